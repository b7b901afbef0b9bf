#pragma once

#include <cuda_runtime_api.h>

#include "anyslot/status.h"
#include "backend/cuda/attention_args.h"
#include "base/dtype.h"

namespace anyslot::cuda {

/// The tensor-core kernels for KV in heads of kHeadDim elements of type T. See
/// attention_tensor_core.cuh.
template <typename T, int kHeadDim>
struct TensorCoreAttention {
  static Status prepare();
  static Status launch(const AttentionArgs& args, const AttentionLaunch& launch);
};

struct AttentionInstance {
  DType kv_dtype;
  int head_dim;
  /// Allows the kernels their shared memory; to be called once.
  Status (*prepare)();
  /// The counts.num_narrow first items have at most kNarrowRows rows x group: each warp walks pages
  /// of its own. In the counts.num_wide others each warp has 16 rows x heads, and all read the same
  /// pages.
  Status (*launch)(const AttentionArgs& args, const AttentionLaunch& launch);
};

/// Whether the wide items of a call are for the kernel of sm_90a.
bool uses_wgmma(const AttentionArgs& args, bool wgmma);
/// nullptr: the plain kernel, which serves any shape, must do.
const AttentionInstance* find_attention_instance(DType kv_dtype, int head_dim);
/// Prepares all instances.
Status prepare_attention();

}  // namespace anyslot::cuda
