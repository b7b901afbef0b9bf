#include "backend/cuda/attention_device.cuh"
#include "backend/cuda/cuda_check.h"
#include "backend/cuda/kv_kernels.h"

namespace anyslot::cuda {

namespace {

constexpr int kThreads = 256;

struct CosSin {
  double cosine;
  double sine;
};
/// With the rounding error of the angle, as RopeTable forms it.
__device__ CosSin cos_sin(int64_t position, double inv_freq) {
  const double factor = static_cast<double>(position);
  const double angle = factor * inv_freq;
  const double error = fma(factor, inv_freq, -angle);
  double sine;
  double cosine;
  sincos(angle, &sine, &cosine);
  return {cosine - error * sine, sine + error * cosine};
}

__global__ void rotations(AngleList list, double factor, const double* inv_freq, int num_pairs,
                          float2* out) {
  if (list.recorded_counts != nullptr) {
    list.count = list.recorded_counts[0];
    list.num_keys = list.recorded_counts[1];
  }
  const int64_t count = list.count * num_pairs;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count;
       i += int64_t{gridDim.x} * kThreads) {
    const int64_t angle = i / num_pairs;
    const int pair = static_cast<int>(i % num_pairs);
    const CosSin value = cos_sin(list.angles[angle], inv_freq[pair]);
    const double scale = angle < list.num_scaled ? factor : 1.0;
    const bool is_key = angle >= list.first_key && angle < list.first_key + list.num_keys;
    const int place = is_key ? key_pair_place(pair, num_pairs) : pair;
    out[angle * num_pairs + place] = {static_cast<float>(value.cosine * scale),
                                      static_cast<float>(value.sine * scale)};
  }
}

/// One block per row and kv head.
template <typename T>
__global__ void write_kv(KvWrite write, const float* k, int64_t k_stride, const float* v,
                         int64_t v_stride) {
  const int head = blockIdx.y;
  const int dim = write.head_dim;
  const int64_t slot = write.slots[blockIdx.x];
  const float* key = k + blockIdx.x * k_stride + head * dim;
  const float* value = v + blockIdx.x * v_stride + head * dim;
  const float2* rotation = write.rotations + int64_t{blockIdx.x} * write.num_pairs;
  T* to =
      static_cast<T*>(write.layer) +
      ((slot / kBlockSize * 2 * write.num_kv_heads + head) * kBlockSize + slot % kBlockSize) * dim;
  T* to_value = to + int64_t{write.num_kv_heads} * kBlockSize * dim;
  for (int c = threadIdx.x; c < dim; c += blockDim.x) {
    float x = key[c];
    if (c < write.num_pairs) {
      x = x * rotation[c].x - key[c + write.num_pairs] * rotation[c].y;
    } else if (c < 2 * write.num_pairs) {
      const float2 turn = rotation[c - write.num_pairs];
      x = x * turn.x + key[c - write.num_pairs] * turn.y;
    }
    to[c] = from_float<T>(x);
    to_value[c] = from_float<T>(value[c]);
  }
}

constexpr int kMaxPairs = 128;

template <typename T>
__device__ void turn_pair(T& low, T& high, float2 turn) {
  const float x = to_float(low);
  const float y = to_float(high);
  low = from_float<T>(x * turn.x - y * turn.y);
  high = from_float<T>(y * turn.x + x * turn.y);
}

template <typename T>
struct alignas(16) Chunk {
  T values[16 / sizeof(T)];
};

/// K of a block, whole heads turned, 16 bytes at a time; a unit is a chunk of the lower half of a
/// head and its partner in the upper half.
template <typename T>
__device__ void copy_keys(const KvCopy& copy, const BlockCopy& order, const T* from, T* to,
                          const float2* turn) {
  constexpr int kElements = 16 / sizeof(T);
  const int chunks = copy.head_dim / 2 / kElements;
  const int units = copy.num_kv_heads * kBlockSize * chunks;
#pragma unroll 4
  for (int unit = threadIdx.x; unit < units; unit += kThreads) {
    const int row = unit / chunks;
    const int c = unit % chunks * kElements;
    if (row % kBlockSize >= order.num_tokens) continue;
    const int64_t place = int64_t{row} * copy.head_dim + c;
    auto low = *reinterpret_cast<const Chunk<T>*>(from + place);
    auto high = *reinterpret_cast<const Chunk<T>*>(from + place + copy.head_dim / 2);
    if (order.turn_by != 0) {
#pragma unroll
      for (int e = 0; e < kElements; ++e) turn_pair(low.values[e], high.values[e], turn[c + e]);
    }
    *reinterpret_cast<Chunk<T>*>(to + place) = low;
    *reinterpret_cast<Chunk<T>*>(to + place + copy.head_dim / 2) = high;
  }
}

/// K of a block, any part of its heads turned.
template <typename T>
__device__ void copy_partly_turned_keys(const KvCopy& copy, const BlockCopy& order, const T* from,
                                        T* to, int pairs, const float2* turn) {
  const int dim = copy.head_dim;
  for (int i = threadIdx.x; i < copy.num_kv_heads * kBlockSize * dim; i += kThreads) {
    if (i / dim % kBlockSize >= order.num_tokens) continue;
    const int c = i % dim;
    if (order.turn_by == 0 || c >= 2 * pairs) {
      to[i] = from[i];
    } else if (c < pairs) {
      T low = from[i];
      T high = from[i + pairs];
      turn_pair(low, high, turn[c]);
      to[i] = low;
      to[i + pairs] = high;
    }
  }
}

/// One block per copy and layer.
template <typename T>
__global__ void __launch_bounds__(kThreads) copy_blocks(KvCopy copy, const BlockCopy* copies) {
  __shared__ float2 turn[kMaxPairs];
  constexpr int kElements = 16 / sizeof(T);
  const BlockCopy order = copies[blockIdx.x];
  const int layer = blockIdx.y;
  const int pairs = copy.num_pairs[layer];
  const int dim = copy.head_dim;
  T* pool = reinterpret_cast<T*>(static_cast<char*>(copy.pool) + layer * copy.layer_bytes);
  const int64_t half = int64_t{copy.num_kv_heads} * kBlockSize * dim;
  const T* from = pool + int64_t{order.src} * 2 * half;
  T* to = pool + int64_t{order.dst} * 2 * half;
  for (int j = threadIdx.x; j < pairs; j += kThreads) {
    const CosSin value = cos_sin(order.turn_by, copy.inv_freq[layer * (dim / 2) + j]);
    turn[j] = {static_cast<float>(value.cosine), static_cast<float>(value.sine)};
  }
  const int row_chunks = dim / kElements;  // V, while the angles are formed
#pragma unroll 4
  for (int i = threadIdx.x; i < copy.num_kv_heads * kBlockSize * row_chunks; i += kThreads) {
    if (i / row_chunks % kBlockSize >= order.num_tokens) continue;
    reinterpret_cast<Chunk<T>*>(to + half)[i] = reinterpret_cast<const Chunk<T>*>(from + half)[i];
  }
  __syncthreads();
  if (2 * pairs == dim && pairs % kElements == 0) {
    copy_keys(copy, order, from, to, turn);
  } else {
    copy_partly_turned_keys(copy, order, from, to, pairs, turn);
  }
}

}  // namespace

Status launch_rotations(const AngleList& angles, double factor, const double* inv_freq,
                        int num_pairs, float2* out, cudaStream_t stream) {
  constexpr int64_t kRecordedBlocks = 256;
  const int64_t count = angles.count * num_pairs;
  const int64_t blocks =
      angles.recorded_counts == nullptr ? (count + kThreads - 1) / kThreads : kRecordedBlocks;
  if (blocks == 0) return {};
  rotations<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(angles, factor, inv_freq,
                                                                    num_pairs, out);
  return launch_status("rotations");
}

Status launch_write_kv(const KvWrite& write, const TensorView& k, const TensorView& v,
                       cudaStream_t stream) {
  if (k.rows == 0) return {};
  const dim3 grid(static_cast<unsigned>(k.rows), static_cast<unsigned>(write.num_kv_heads));
  const int threads = (write.head_dim + 31) / 32 * 32;
  const auto* key = static_cast<const float*>(k.data);
  const auto* value = static_cast<const float*>(v.data);
  with_kv_type(write.dtype, [&]<typename T>(T) {
    write_kv<T><<<grid, threads, 0, stream>>>(write, key, k.row_stride, value, v.row_stride);
  });
  return launch_status("write_kv");
}

Status launch_copy_blocks(const KvCopy& copy, const BlockCopy* copies, int num_copies,
                          cudaStream_t stream) {
  if (num_copies == 0) return {};
  const dim3 grid(static_cast<unsigned>(num_copies), static_cast<unsigned>(copy.num_layers));
  with_kv_type(copy.dtype,
               [&]<typename T>(T) { copy_blocks<T><<<grid, kThreads, 0, stream>>>(copy, copies); });
  return launch_status("copy_blocks");
}

}  // namespace anyslot::cuda
