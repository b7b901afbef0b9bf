#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <utility>

#include "backend/cuda/attention_args.h"
#include "backend/cuda/cuda_kv_storage.h"
#include "backend/cuda/device_memory.h"
#include "backend/cuda/step_data.h"
#include "backend/ops.h"

namespace anyslot::cuda {

/// One layer's attention.
struct AttentionCall {
  const CudaKvStorage& storage;
  int layer = 0;
  const AttentionSpec& spec;
  const DevicePlan& plan;
  const StepData& data;
  const StepData::Rotations& rotations;
  const TensorView& q;
  const TensorView& out;
  const int32_t* step_rows = nullptr;  // of each row of q, in device memory; nullptr: all rows
  bool recording = false;              // for later steps too, whose plans have other counts
};

/// Chooses kernels for a call and holds the partials.
class AttentionRunner {
 public:
  /// tensor_cores off: the plain kernel, for comparison. wgmma: the device runs code of sm_90a.
  /// early_merge: see launch_merge.
  AttentionRunner(int num_processors, bool tensor_cores, bool wgmma, bool early_merge)
      : num_processors_(num_processors),
        tensor_cores_(tensor_cores),
        wgmma_(wgmma),
        early_merge_(early_merge) {}

  Status open();
  /// Room for partials; run() takes it when it is missing.
  Status reserve(int64_t num_partials, int num_heads, int head_dim);
  Status run(const AttentionCall& call, cudaStream_t stream);

  /// Whether a call since the last time ran the plain kernel, whose launches cannot be recorded.
  bool take_used_plain_kernel() { return std::exchange(used_plain_kernel_, false); }
  const void* partials() const { return partial_out_.data(); }
  const void* partial_states() const { return partial_state_.data(); }
  const void* positioned_q() const { return positioned_q_.data(); }

 private:
  Status launch(const AttentionArgs& args, PositionedQ positioned, cudaStream_t stream);

  int num_processors_;
  bool tensor_cores_;
  bool wgmma_;
  bool early_merge_;
  bool used_plain_kernel_ = false;
  DeviceMemory partial_out_;
  DeviceMemory partial_state_;
  DeviceMemory positioned_q_;
};

}  // namespace anyslot::cuda
