// What is done to all rows before and after attention.

#include "backend/cuda/attention_device.cuh"
#include "backend/cuda/cuda_check.h"

namespace anyslot::cuda {

namespace {

constexpr int kWarps = 4;
constexpr int kMaxHeadDim = 256;
constexpr int kQuads = kMaxHeadDim / 128;  // float4 of a lane

/// One block per output row and head; each warp sums every kWarps-th partial.
template <typename T>
__global__ void merge_partials(AttentionArgs args) {
  __shared__ float sums[kWarps];
  __shared__ float4 outs[kWarps][kMaxHeadDim / 4];
  wait_for_partials();
  if (blockIdx.x >= counts_of(args).num_merges) return;
  const Merge merge = args.merges[blockIdx.x];
  const int head = blockIdx.y;
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  const int quads = args.head_dim / 4;
  float maximum = -INFINITY;
  for (int s = merge.slot_begin + lane; s < merge.slot_end; s += 32) {
    maximum = fmaxf(maximum, args.partial_state[int64_t{args.slots[s]} * args.num_heads + head].x);
  }
  for (int step = 16; step > 0; step /= 2) {
    maximum = fmaxf(maximum, __shfl_xor_sync(0xffffffffU, maximum, step));
  }
  float sum = 0.0F;
  float4 out[kQuads] = {};
#pragma unroll 4
  for (int s = merge.slot_begin + warp; s < merge.slot_end; s += kWarps) {
    const int64_t slot = int64_t{args.slots[s]} * args.num_heads + head;
    const float2 state = args.partial_state[slot];
    const float weight = state.x == -INFINITY ? 0.0F : exp2f(state.x - maximum);
    sum += weight * state.y;
    const auto* partial = reinterpret_cast<const float4*>(args.partial_out + slot * args.head_dim);
#pragma unroll
    for (int i = 0; i < kQuads; ++i) {
      if (lane + 32 * i >= quads) continue;
      const float4 x = partial[lane + 32 * i];
      out[i] = {out[i].x + weight * x.x, out[i].y + weight * x.y, out[i].z + weight * x.z,
                out[i].w + weight * x.w};
    }
  }
#pragma unroll
  for (int i = 0; i < kQuads; ++i) {
    if (lane + 32 * i < quads) outs[warp][lane + 32 * i] = out[i];
  }
  if (lane == 0) sums[warp] = sum;
  __syncthreads();
  sum = 0.0F;
  for (const float part : sums) sum += part;
  T* result = static_cast<T*>(args.out) + merge.output_row * args.out_stride + head * args.head_dim;
  for (int d = threadIdx.x; d < args.head_dim; d += kWarps * 32) {
    float x = 0.0F;
    for (int w = 0; w < kWarps; ++w) x += reinterpret_cast<const float*>(outs[w])[d];
    result[d] = from_float<T>(sum > 0.0F ? x / sum : 0.0F);
  }
}

/// One block per row, a thread per pair.
__global__ void position_q(AttentionArgs args, const int32_t* step_rows, float* out) {
  const int pairs = args.num_pairs;
  const int row = step_rows == nullptr ? blockIdx.x : step_rows[blockIdx.x];
  const float* from = args.q + blockIdx.x * args.q_stride;
  float* to = out + int64_t{blockIdx.x} * args.num_heads * args.head_dim;
  for (int i = threadIdx.x; i < args.num_heads * pairs; i += blockDim.x) {
    const int c = i / pairs * args.head_dim + i % pairs;
    const float2 turn = args.row_rotations[int64_t{row} * pairs + i % pairs];
    const float low = from[c];
    const float high = from[c + pairs];
    to[c] = low * turn.x - high * turn.y;
    to[c + pairs] = high * turn.x + low * turn.y;
  }
}

}  // namespace

Status launch_position_q(const AttentionArgs& args, const PositionedQ& positioned,
                         cudaStream_t stream) {
  constexpr int kThreads = 256;
  position_q<<<static_cast<unsigned>(positioned.num_rows), kThreads, 0, stream>>>(
      args, positioned.step_rows, positioned.q);
  return launch_status("turning Q");
}

Status launch_merge(const AttentionArgs& args, bool early, cudaStream_t stream) {
  const int num_merges = args.recorded_counts == nullptr ? args.counts.num_merges : args.max_merges;
  if (num_merges == 0) return {};
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(num_merges, args.num_heads);
  config.blockDim = dim3(kWarps * 32);
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = early ? 1 : 0;
  return with_element_type(args.out_dtype, [&]<typename T>(T) {
    return cuda_status(cudaLaunchKernelEx(&config, merge_partials<T>, args), "merging attention");
  });
}

}  // namespace anyslot::cuda
