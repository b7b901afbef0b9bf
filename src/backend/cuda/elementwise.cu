#include <climits>

#include "backend/cuda/attention_device.cuh"
#include "backend/cuda/cuda_check.h"
#include "backend/cuda/elementwise.h"

namespace anyslot::cuda {

namespace {

constexpr int kThreads = 256;

template <typename T>
__global__ void widen(const T* x, int64_t x_stride, float* out, int64_t out_stride, int64_t cols) {
  const T* from = x + blockIdx.x * x_stride;
  float* to = out + blockIdx.x * out_stride;
  for (int64_t c = threadIdx.x; c < cols; c += kThreads) to[c] = to_float(from[c]);
}

__device__ inline void store_quad(float* to, float4 x) { *reinterpret_cast<float4*>(to) = x; }
__device__ inline void store_quad(__nv_bfloat16* to, float4 x) {
  const __nv_bfloat162 low = __floats2bfloat162_rn(x.x, x.y);
  const __nv_bfloat162 high = __floats2bfloat162_rn(x.z, x.w);
  *reinterpret_cast<uint2*>(to) = {reinterpret_cast<const uint32_t&>(low),
                                   reinterpret_cast<const uint32_t&>(high)};
}

template <int kBlockThreads>
__device__ float block_sum(float x) {
  __shared__ float sums[kBlockThreads / 32];
  for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffffU, x, step);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = x;
  __syncthreads();
  float total = 0.0F;
  for (const float sum : sums) total += sum;
  return total;
}

template <typename T>
__global__ void rms_norm(const float* x, int64_t x_stride, const float* weight, float epsilon,
                         T* out, int64_t out_stride, int64_t cols) {
  const float* from = x + blockIdx.x * x_stride;
  T* to = out + blockIdx.x * out_stride;
  float sum = 0.0F;
  for (int64_t c = threadIdx.x; c < cols; c += kThreads) sum += from[c] * from[c];
  const float factor = 1.0F / sqrtf(block_sum<kThreads>(sum) / static_cast<float>(cols) + epsilon);
  for (int64_t c = threadIdx.x; c < cols; c += kThreads) {
    to[c] = from_float<T>(from[c] * factor * weight[c]);
  }
}

constexpr int kNormThreads = 512;
constexpr int kNormQuads = 4;  // of a thread, kept in registers

/// The same for rows of float4, at most kNormThreads * kNormQuads of them: each is read once.
template <typename T>
__global__ void __launch_bounds__(kNormThreads)
    rms_norm_quads(const float4* x, int64_t x_stride, const float4* weight, float epsilon, T* out,
                   int64_t out_stride, int quads) {
  const float4* from = x + blockIdx.x * x_stride;
  float4 row[kNormQuads];
  float sum = 0.0F;
#pragma unroll
  for (int i = 0; i < kNormQuads; ++i) {
    const int q = i * kNormThreads + static_cast<int>(threadIdx.x);
    row[i] = q < quads ? from[q] : float4{};
    sum += row[i].x * row[i].x + row[i].y * row[i].y + row[i].z * row[i].z + row[i].w * row[i].w;
  }
  const float mean = block_sum<kNormThreads>(sum) / static_cast<float>(4 * quads);
  const float factor = 1.0F / sqrtf(mean + epsilon);
#pragma unroll
  for (int i = 0; i < kNormQuads; ++i) {
    const int q = i * kNormThreads + static_cast<int>(threadIdx.x);
    if (q >= quads) continue;
    const float4 scale = weight[q];
    T* to = out + blockIdx.x * out_stride + 4 * q;
    store_quad(to, {row[i].x * factor * scale.x, row[i].y * factor * scale.y,
                    row[i].z * factor * scale.z, row[i].w * factor * scale.w});
  }
}

template <typename T>
__global__ void gated_silu(const float* gate_up, int64_t stride, T* out, int64_t out_stride,
                           int64_t cols) {
  const int64_t c = int64_t{blockIdx.y} * kThreads + threadIdx.x;
  if (c >= cols) return;
  const float* from = gate_up + blockIdx.x * stride;
  const float gate = from[c];
  out[blockIdx.x * out_stride + c] = from_float<T>(gate / (1.0F + expf(-gate)) * from[cols + c]);
}

__global__ void gather(const float* x, int64_t x_stride, const int32_t* indices, float* out,
                       int64_t out_stride, int64_t cols) {
  const float* from = x + indices[blockIdx.x] * x_stride;
  float* to = out + blockIdx.x * out_stride;
  for (int64_t c = threadIdx.x; c < cols; c += kThreads) to[c] = from[c];
}

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
  const int64_t count =
      (list.recorded_count == nullptr ? list.count : *list.recorded_count) * num_pairs;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count;
       i += int64_t{gridDim.x} * kThreads) {
    const int64_t angle = i / num_pairs;
    const CosSin value = cos_sin(list.angles[angle], inv_freq[i % num_pairs]);
    const double scale = angle < list.num_scaled ? factor : 1.0;
    out[i] = {static_cast<float>(value.cosine * scale), static_cast<float>(value.sine * scale)};
  }
}

/// The better of two candidates is the larger, then the one of the lower column.
struct Candidate {
  float value;
  int column;
};
__device__ Candidate better(Candidate a, Candidate b) {
  const bool first = a.value > b.value || (a.value == b.value && a.column < b.column);
  return first ? a : b;
}

constexpr int kArgmaxThreads = 1024;

/// One block per row.
__global__ void __launch_bounds__(kArgmaxThreads)
    argmax(const float* x, int64_t x_stride, int cols, int32_t* tokens) {
  __shared__ Candidate of_warps[kArgmaxThreads / 32];
  const float* row = x + blockIdx.x * x_stride;
  Candidate best{-INFINITY, INT_MAX};
  bool finite = true;
#pragma unroll 4
  for (int c = threadIdx.x; c < cols; c += kArgmaxThreads) {
    const float value = row[c];
    finite = finite && isfinite(value);
    best = better(best, {value, c});
  }
  finite = __syncthreads_and(finite);
  for (int step = 16; step > 0; step /= 2) {
    best = better(best, {__shfl_xor_sync(0xffffffffU, best.value, step),
                         __shfl_xor_sync(0xffffffffU, best.column, step)});
  }
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = best;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (const Candidate& candidate : of_warps) best = better(best, candidate);
  tokens[blockIdx.x] = finite && best.column < cols ? best.column : -1;
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

Status launch_widen(const TensorView& x, const TensorView& out, cudaStream_t stream) {
  if (x.rows == 0 || x.cols == 0) return {};
  const auto grid = static_cast<unsigned>(x.rows);
  auto* to = static_cast<float*>(out.data);
  switch (x.dtype) {
    case DType::kFloat32:
      widen<<<grid, kThreads, 0, stream>>>(static_cast<const float*>(x.data), x.row_stride, to,
                                           out.row_stride, x.cols);
      break;
    case DType::kBFloat16:
      widen<<<grid, kThreads, 0, stream>>>(static_cast<const __nv_bfloat16*>(x.data), x.row_stride,
                                           to, out.row_stride, x.cols);
      break;
    case DType::kFloat16:
      widen<<<grid, kThreads, 0, stream>>>(static_cast<const __half*>(x.data), x.row_stride, to,
                                           out.row_stride, x.cols);
      break;
  }
  return launch_status("embed");
}

namespace {

bool is_made_of_quads(const TensorView& x) {
  const size_t quad_bytes = 4 * dtype_size(x.dtype);
  return x.cols % 4 == 0 && x.row_stride % 4 == 0 &&
         reinterpret_cast<uintptr_t>(x.data) % quad_bytes == 0;
}

template <typename T>
void start_rms_norm(const TensorView& x, const float* weight, float epsilon, const TensorView& out,
                    cudaStream_t stream) {
  const auto grid = static_cast<unsigned>(x.rows);
  auto* to = static_cast<T*>(out.data);
  if (is_made_of_quads(x) && is_made_of_quads(out) && x.cols <= 4 * kNormThreads * kNormQuads) {
    rms_norm_quads<<<grid, kNormThreads, 0, stream>>>(
        static_cast<const float4*>(x.data), x.row_stride / 4,
        reinterpret_cast<const float4*>(weight), epsilon, to, out.row_stride,
        static_cast<int>(x.cols / 4));
  } else {
    rms_norm<<<grid, kThreads, 0, stream>>>(static_cast<const float*>(x.data), x.row_stride, weight,
                                            epsilon, to, out.row_stride, x.cols);
  }
}

}  // namespace

Status launch_rms_norm(const TensorView& x, const float* weight, float epsilon,
                       const TensorView& out, cudaStream_t stream) {
  if (x.rows == 0 || x.cols == 0) return {};
  if (out.dtype == DType::kFloat32) {
    start_rms_norm<float>(x, weight, epsilon, out, stream);
  } else {
    start_rms_norm<__nv_bfloat16>(x, weight, epsilon, out, stream);
  }
  return launch_status("rms_norm");
}

Status launch_gated_silu(const TensorView& gate_up, const TensorView& out, cudaStream_t stream) {
  if (out.rows == 0 || out.cols == 0) return {};
  const dim3 grid(static_cast<unsigned>(out.rows),
                  static_cast<unsigned>((out.cols + kThreads - 1) / kThreads));
  const auto* from = static_cast<const float*>(gate_up.data);
  if (out.dtype == DType::kFloat32) {
    gated_silu<<<grid, kThreads, 0, stream>>>(
        from, gate_up.row_stride, static_cast<float*>(out.data), out.row_stride, out.cols);
  } else {
    gated_silu<<<grid, kThreads, 0, stream>>>(
        from, gate_up.row_stride, static_cast<__nv_bfloat16*>(out.data), out.row_stride, out.cols);
  }
  return launch_status("gated_silu");
}

Status launch_gather(const TensorView& x, const int32_t* indices, const TensorView& out,
                     cudaStream_t stream) {
  if (out.rows == 0 || out.cols == 0) return {};
  gather<<<static_cast<unsigned>(out.rows), kThreads, 0, stream>>>(
      static_cast<const float*>(x.data), x.row_stride, indices, static_cast<float*>(out.data),
      out.row_stride, out.cols);
  return launch_status("gather_sampled");
}

Status launch_rotations(const AngleList& angles, double factor, const double* inv_freq,
                        int num_pairs, float2* out, cudaStream_t stream) {
  constexpr int64_t kRecordedBlocks = 256;
  const int64_t count = angles.count * num_pairs;
  const int64_t blocks =
      angles.recorded_count == nullptr ? (count + kThreads - 1) / kThreads : kRecordedBlocks;
  if (blocks == 0) return {};
  rotations<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(angles, factor, inv_freq,
                                                                    num_pairs, out);
  return launch_status("rotations");
}

Status launch_argmax(const TensorView& x, int32_t* tokens, cudaStream_t stream) {
  if (x.rows == 0) return {};
  argmax<<<static_cast<unsigned>(x.rows), kArgmaxThreads, 0, stream>>>(
      static_cast<const float*>(x.data), x.row_stride, static_cast<int>(x.cols), tokens);
  return launch_status("argmax");
}

Status launch_write_kv(const KvWrite& write, const TensorView& k, const TensorView& v,
                       cudaStream_t stream) {
  if (k.rows == 0) return {};
  const dim3 grid(static_cast<unsigned>(k.rows), static_cast<unsigned>(write.num_kv_heads));
  const int threads = (write.head_dim + 31) / 32 * 32;
  const auto* key = static_cast<const float*>(k.data);
  const auto* value = static_cast<const float*>(v.data);
  if (write.dtype == DType::kFloat32) {
    write_kv<float><<<grid, threads, 0, stream>>>(write, key, k.row_stride, value, v.row_stride);
  } else {
    write_kv<__nv_bfloat16>
        <<<grid, threads, 0, stream>>>(write, key, k.row_stride, value, v.row_stride);
  }
  return launch_status("write_kv");
}

Status launch_copy_blocks(const KvCopy& copy, const BlockCopy* copies, int num_copies,
                          cudaStream_t stream) {
  if (num_copies == 0) return {};
  const dim3 grid(static_cast<unsigned>(num_copies), static_cast<unsigned>(copy.num_layers));
  if (copy.dtype == DType::kFloat32) {
    copy_blocks<float><<<grid, kThreads, 0, stream>>>(copy, copies);
  } else {
    copy_blocks<__nv_bfloat16><<<grid, kThreads, 0, stream>>>(copy, copies);
  }
  return launch_status("copy_blocks");
}

}  // namespace anyslot::cuda
