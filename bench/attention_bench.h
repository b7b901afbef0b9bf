#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "anyslot/status.h"
#include "attention_step.h"
#include "backend/ops.h"
#include "backend/rope.h"
#include "model/model_config.h"
#include "timing.h"

namespace anyslot::bench {

/// How the attention of a case did. Times are medians, of one layer.
struct AttentionResult {
  double seconds = 0;
  double plan_seconds = 0;  // begin_step; a model plans once for all layers
  double operations = 0;
  double bytes_read = 0;      // of KV, as the step is planned
  double distinct_bytes = 0;  // of KV, each document once
  double error = 0;           // of the rows that were checked; see largest_row_error
  double zero_ratio = 0;      // time over that with all angles 0, when asked for
  double unturned_ratio = 0;  // time over that with nothing turned, when asked for
};

struct AttentionBenchOptions {
  DType dtype = DType::kBFloat16;  // of activations
  DType kv_dtype = DType::kBFloat16;
  int num_threads = 1;
  std::string max_isa;
  RunLimits limits;
  int checked_rows = 3;
  bool angles_zero = false;  // also time the cases with all angles 0, in turns
};

/// One layer's attention on one backend, over random K and V. Steps take turns on different blocks
/// of a pool that no cache holds.
class AttentionBench {
 public:
  /// The pool serves cases up to `num_blocks`. Fails like the backend.
  static Expected<std::unique_ptr<AttentionBench>> create(const ModelConfig& model,
                                                          int64_t num_blocks,
                                                          const AttentionBenchOptions& options);

  Expected<AttentionResult> run(const AttentionCase& attention_case);

 private:
  /// Seconds of begin_step and of the attention.
  struct StepTimes {
    double plan = 0;
    double attention = 0;
  };

  AttentionBench(const ModelConfig& model, const AttentionBenchOptions& options);

  Status open(const ModelConfig& model, int64_t num_blocks);
  std::vector<AttentionStep> make_steps(const AttentionCase& attention_case) const;
  Status reserve_rows(int64_t num_rows);
  Expected<StepTimes> run_step(const StepPlan& plan, const RopeTable& rope);
  Status measure(const std::vector<AttentionStep>& steps, AttentionResult& result);

  AttentionBenchOptions options_;
  RopeTable rope_;
  RopeTable zero_rope_;
  RopeTable no_rope_;
  AttentionSpec spec_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<KvStorage> storage_;
  std::unique_ptr<DeviceBuffer> q_buffer_;
  std::unique_ptr<DeviceBuffer> out_buffer_;
  TensorView q_;  // of the case at hand
  TensorView out_;
};

}  // namespace anyslot::bench
