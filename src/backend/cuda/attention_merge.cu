#include "backend/cuda/attention_device.cuh"
#include "backend/cuda/cuda_check.h"

namespace anyslot::cuda {

namespace {

/// One block of head_dim threads (rounded up to warps) per output row and head.
template <typename T>
__global__ void merge_partials(AttentionArgs args) {
  const Merge merge = args.merges[blockIdx.x];
  const int head = blockIdx.y;
  const int d = threadIdx.x;
  float maximum = -INFINITY;
  for (int s = merge.slot_begin; s < merge.slot_end; ++s) {
    maximum = fmaxf(maximum, args.partial_state[int64_t{args.slots[s]} * args.num_heads + head].x);
  }
  float sum = 0.0F;
  float out = 0.0F;
  for (int s = merge.slot_begin; s < merge.slot_end; ++s) {
    const int64_t slot = int64_t{args.slots[s]} * args.num_heads + head;
    const float2 state = args.partial_state[slot];
    if (state.x == -INFINITY) continue;
    const float weight = exp2f(state.x - maximum);
    sum += weight * state.y;
    if (d < args.head_dim) out += weight * args.partial_out[slot * args.head_dim + d];
  }
  if (d >= args.head_dim) return;
  T* result = static_cast<T*>(args.out) + merge.output_row * args.out_stride + head * args.head_dim;
  result[d] = from_float<T>(sum > 0.0F ? out / sum : 0.0F);
}

}  // namespace

Status launch_merge(const AttentionArgs& args, DType dtype, cudaStream_t stream) {
  if (args.num_merges == 0) return {};
  const dim3 grid(args.num_merges, args.num_heads);
  const int threads = (args.head_dim + 31) / 32 * 32;
  if (dtype == DType::kFloat32) {
    merge_partials<float><<<grid, threads, 0, stream>>>(args);
  } else {
    merge_partials<__nv_bfloat16><<<grid, threads, 0, stream>>>(args);
  }
  return launch_status("merging attention");
}

}  // namespace anyslot::cuda
