#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "anyslot/config.h"
#include "anyslot/status.h"
#include "backend/ops.h"
#include "matmul_rate.h"
#include "model/model_config.h"
#include "timing.h"

namespace anyslot::bench {

/// A product of a decoder: [out, in] weights.
struct LinearShape {
  std::string name;  // "qkv", "o", "gate_up", "down", "lm_head"
  int64_t out = 0;
  int64_t in = 0;
  int64_t most_rows = 0;  // that the engine multiplies at a time; 0: any number
};

/// The products of a layer and the one that gives logits.
std::vector<LinearShape> linear_shapes(const ModelConfig& model);

/// How a product did. Times are medians, of one product.
struct LinearResult {
  double seconds = 0;
  double onednn_seconds = 0;  // oneDNN's own product of the same sizes, in turns
  double operations = 0;
  double weight_bytes = 0;
  double error = 0;  // the largest of the elements that were checked; they lie around 1
};

/// What an element's error may be: sums of thousands of exact products in float32.
inline constexpr double kLinearErrorBound = 1e-3;

struct LinearBenchOptions {
  ComputeType type = ComputeType::kBFloat16;
  WeightType weights = WeightType::kComputeType;
  int num_threads = 1;
  std::string max_isa;
  RunLimits limits;
};

/// Products of one shape on one backend, with random weights that no cache holds.
class LinearBench {
 public:
  /// The backend must outlive it. Fails like the backend.
  static Expected<std::unique_ptr<LinearBench>> create(Backend& backend, const LinearShape& shape,
                                                       const LinearBenchOptions& options);

  Expected<LinearResult> run(int64_t num_rows);

 private:
  LinearBench(Backend& backend, const LinearShape& shape, const LinearBenchOptions& options)
      : backend_(backend), shape_(shape), options_(options) {}

  Status load_weights();
  Status reserve_rows(int64_t num_rows);
  Expected<double> run_products(size_t num_weights);
  /// Times the product with each of the first weights, in turns with oneDNN's.
  Status measure(size_t num_weights, OnednnProducts& onednn, LinearResult& result);
  std::vector<float> stored_weights(int64_t out_feature) const;
  double largest_error() const;

  Backend& backend_;
  LinearShape shape_;
  LinearBenchOptions options_;
  std::unique_ptr<bf16_t[]> values_;                    // [out, in], of every weight
  std::vector<std::unique_ptr<LinearWeight>> weights_;  // equal ones, more than caches hold
  std::unique_ptr<DeviceBuffer> x_buffer_;
  std::unique_ptr<DeviceBuffer> out_buffer_;
  TensorView x_;  // of the run at hand
  TensorView out_;
};

}  // namespace anyslot::bench
