#include "backend/cuda/attention_device.cuh"
#include "backend/cuda/cuda_check.h"

namespace anyslot::cuda {

namespace {

constexpr int kWarps = 4;
constexpr int kMaxHeadDim = 256;
constexpr int kDimsPerLane = kMaxHeadDim / 32;

__device__ float warp_sum(float x) {
  for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffffU, x, step);
  return x;
}

/// A rotation, in two parts where it is one of raw keys.
struct Rotation {
  const float2* first;  // nullptr: none
  const float2* second = nullptr;
  int num_pairs = 0;
  __device__ float2 operator[](int pair) const {
    if (second == nullptr) return first[pair];
    const int place = key_pair_place(pair, num_pairs);
    return compose(first[place], second[place]);
  }
};

/// Element c of a head, turned.
template <typename T>
__device__ float turned_element(const T* head, int c, int num_pairs, Rotation rotation) {
  const float x = to_float(head[c]);
  if (c >= 2 * num_pairs) return x;
  const float2 turn = rotation[c < num_pairs ? c : c - num_pairs];
  if (c < num_pairs) return x * turn.x - to_float(head[c + num_pairs]) * turn.y;
  return x * turn.x + to_float(head[c - num_pairs]) * turn.y;
}

/// One warp's share of a row's softmax; dimension d of the output is lane d % 32's.
struct RowState {
  float maximum = -INFINITY;
  float sum = 0.0F;
  float out[kDimsPerLane] = {};
};

template <typename T>
__device__ void attend(const AttentionArgs& args, const float* q, const T* key, const T* value,
                       Rotation key_rotation, RowState& state) {
  const int lane = threadIdx.x % 32;
  float score = 0.0F;
  for (int d = lane; d < args.head_dim; d += 32) {
    const float k = key_rotation.first == nullptr
                        ? to_float(key[d])
                        : turned_element(key, d, args.num_pairs, key_rotation);
    score += q[d] * k;
  }
  score = warp_sum(score) * args.scale_log2;
  const float maximum = fmaxf(state.maximum, score);
  const float keep = exp2f(state.maximum - maximum);
  const float weight = exp2f(score - maximum);
  state.maximum = maximum;
  state.sum = state.sum * keep + weight;
#pragma unroll
  for (int i = 0; i < kDimsPerLane; ++i) {
    const int d = lane + 32 * i;
    if (d < args.head_dim) state.out[i] = state.out[i] * keep + weight * to_float(value[d]);
  }
}

template <typename T>
__device__ void attend_range(const AttentionArgs& args, const DeviceRange& range, int distance,
                             int kv_head, const float* q, RowState& state) {
  const Visible visible = visible_tokens(range, distance, args.window);
  for (int i = visible.first + static_cast<int>(threadIdx.x) / 32; i < visible.end; i += kWarps) {
    const T* page = key_page<T>(args, args.blocks[range.blocks + i / kBlockSize], kv_head);
    const T* key = page + (i % kBlockSize) * args.head_dim;
    Rotation rotation{nullptr};
    if (range.key_rotation >= 0) {
      const int64_t block = int64_t{range.key_rotation} + i / kBlockSize;
      rotation = {args.turn_rotations + block * args.num_pairs,
                  args.turn_rotations + int64_t{i % kBlockSize} * args.num_pairs, args.num_pairs};
    }
    attend(args, q, key, key + value_offset(args), rotation, state);
  }
}

/// The item's row as a partial, or as the result.
template <typename T>
__device__ void write_row(const AttentionArgs& args, const WorkItem& item, int r, int head,
                          const RowState& state) {
  __shared__ float maxima[kWarps];
  __shared__ float sums[kWarps];
  __shared__ float outs[kWarps][kMaxHeadDim];
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  if (lane == 0) {
    maxima[warp] = state.maximum;
    sums[warp] = state.sum;
  }
#pragma unroll
  for (int i = 0; i < kDimsPerLane; ++i) outs[warp][lane + 32 * i] = state.out[i];
  __syncthreads();
  float maximum = -INFINITY;
  for (int w = 0; w < kWarps; ++w) maximum = fmaxf(maximum, maxima[w]);
  float weights[kWarps];
  float sum = 0.0F;
  for (int w = 0; w < kWarps; ++w) {
    weights[w] = maxima[w] == -INFINITY ? 0.0F : exp2f(maxima[w] - maximum);
    sum += weights[w] * sums[w];
  }
  const int64_t slot = (int64_t{item.partial} + r) * args.num_heads + head;
  const int64_t result = args.output_rows[item.row_begin + r] * args.out_stride +
                         static_cast<int64_t>(head) * args.head_dim;
  for (int d = threadIdx.x; d < args.head_dim; d += blockDim.x) {
    float x = 0.0F;
    for (int w = 0; w < kWarps; ++w) x += weights[w] * outs[w][d];
    if (item.partial >= 0) {
      args.partial_out[slot * args.head_dim + d] = x;
    } else {
      store_output<T>(args, result + d, sum > 0.0F ? x / sum : 0.0F);
    }
  }
  if (item.partial >= 0 && threadIdx.x == 0) args.partial_state[slot] = {maximum, sum};
}

/// One block of threads per row and head; warps take every kWarps-th key.
template <typename T>
__global__ void plain_attention(AttentionArgs args) {
  __shared__ float q[kMaxHeadDim];
  const WorkItem item = args.items[blockIdx.x];
  const int r = blockIdx.z;
  if (item.row_begin + r >= item.row_end) return;
  const int head = blockIdx.y;
  const int kv_head = head / (args.num_heads / args.num_kv_heads);
  const int row = args.rows[item.row_begin + r];
  const float* query =
      args.q + args.output_rows[item.row_begin + r] * args.q_stride + head * args.head_dim;
  __shared__ float2 rotation[kMaxHeadDim / 2];
  RowState state;
  for (int i = item.range_begin; i < item.range_end; ++i) {
    const DeviceRange range = args.ranges[i];
    const int turn = range_turn(args, range, r);
    __syncthreads();
    for (int j = threadIdx.x; j < args.num_pairs; j += blockDim.x) {
      rotation[j] = compose(args.row_rotations[int64_t{row} * args.num_pairs + j],
                            args.turn_rotations[int64_t{turn} * args.num_pairs + j]);
    }
    __syncthreads();
    for (int d = threadIdx.x; d < args.head_dim; d += blockDim.x) {
      q[d] = turned_element(query, d, args.num_pairs, Rotation{rotation});
    }
    __syncthreads();
    attend_range<T>(args, range, args.positions[row] - range_start(args, range, r), kv_head, q,
                    state);
  }
  write_row<T>(args, item, r, head, state);
}

}  // namespace

Status launch_plain_attention(const AttentionArgs& args, cudaStream_t stream) {
  const int num_items = args.counts.num_narrow + args.counts.num_wide;
  if (num_items == 0) return {};
  const dim3 grid(num_items, args.num_heads, args.counts.max_rows);
  with_kv_type(args.kv_dtype,
               [&]<typename T>(T) { plain_attention<T><<<grid, kWarps * 32, 0, stream>>>(args); });
  return launch_status("plain attention");
}

}  // namespace anyslot::cuda
