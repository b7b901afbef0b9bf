#pragma once

#include <cuda_runtime_api.h>

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
};

/// Chooses kernels for a call and holds the partials.
class AttentionRunner {
 public:
  /// tensor_cores off: the plain kernel, for comparison. early_merge: see launch_merge.
  AttentionRunner(int num_processors, bool tensor_cores, bool early_merge)
      : num_processors_(num_processors), tensor_cores_(tensor_cores), early_merge_(early_merge) {}

  Status run(const AttentionCall& call, cudaStream_t stream);

 private:
  Status launch(const AttentionCall& call, AttentionArgs args, cudaStream_t stream) const;

  int num_processors_;
  bool tensor_cores_;
  bool early_merge_;
  DeviceMemory partial_out_;
  DeviceMemory partial_state_;
};

}  // namespace anyslot::cuda
