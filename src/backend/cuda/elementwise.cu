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

__device__ float block_sum(float x) {
  __shared__ float sums[kThreads / 32];
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
  const float factor = 1.0F / sqrtf(block_sum(sum) / static_cast<float>(cols) + epsilon);
  for (int64_t c = threadIdx.x; c < cols; c += kThreads) {
    to[c] = from_float<T>(from[c] * factor * weight[c]);
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

__global__ void rotations(const int32_t* angles, int64_t num_angles, int64_t num_scaled,
                          double factor, const double* inv_freq, int num_pairs, float2* out) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= num_angles * num_pairs) return;
  const int64_t angle = i / num_pairs;
  const CosSin value = cos_sin(angles[angle], inv_freq[i % num_pairs]);
  const double scale = angle < num_scaled ? factor : 1.0;
  out[i] = {static_cast<float>(value.cosine * scale), static_cast<float>(value.sine * scale)};
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

/// One block per copy and layer.
template <typename T>
__global__ void copy_blocks(KvCopy copy, const BlockCopy* copies) {
  __shared__ float2 turn[kMaxPairs];
  const BlockCopy order = copies[blockIdx.x];
  const int layer = blockIdx.y;
  const int pairs = copy.num_pairs[layer];
  const int dim = copy.head_dim;
  for (int j = threadIdx.x; j < pairs; j += kThreads) {
    const CosSin value = cos_sin(order.turn_by, copy.inv_freq[layer * (dim / 2) + j]);
    turn[j] = {static_cast<float>(value.cosine), static_cast<float>(value.sine)};
  }
  __syncthreads();
  T* pool = reinterpret_cast<T*>(static_cast<char*>(copy.pool) + layer * copy.layer_bytes);
  const int64_t half = int64_t{copy.num_kv_heads} * kBlockSize * dim;
  const T* from = pool + int64_t{order.src} * 2 * half;
  T* to = pool + int64_t{order.dst} * 2 * half;
  for (int64_t i = threadIdx.x; i < half; i += kThreads) {
    if (i / dim % kBlockSize >= order.num_tokens) continue;
    const int c = static_cast<int>(i % dim);
    to[half + i] = from[half + i];
    if (order.turn_by == 0 || c >= 2 * pairs) {
      to[i] = from[i];
    } else if (c < pairs) {
      to[i] = from_float<T>(to_float(from[i]) * turn[c].x - to_float(from[i + pairs]) * turn[c].y);
    } else {
      const float2 rotation = turn[c - pairs];
      to[i] =
          from_float<T>(to_float(from[i]) * rotation.x + to_float(from[i - pairs]) * rotation.y);
    }
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

Status launch_rms_norm(const TensorView& x, const float* weight, float epsilon,
                       const TensorView& out, cudaStream_t stream) {
  if (x.rows == 0 || x.cols == 0) return {};
  const auto grid = static_cast<unsigned>(x.rows);
  const auto* from = static_cast<const float*>(x.data);
  if (out.dtype == DType::kFloat32) {
    rms_norm<<<grid, kThreads, 0, stream>>>(from, x.row_stride, weight, epsilon,
                                            static_cast<float*>(out.data), out.row_stride, x.cols);
  } else {
    rms_norm<<<grid, kThreads, 0, stream>>>(from, x.row_stride, weight, epsilon,
                                            static_cast<__nv_bfloat16*>(out.data), out.row_stride,
                                            x.cols);
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

Status launch_rotations(const int32_t* angles, int64_t num_angles, int64_t num_scaled,
                        double factor, const double* inv_freq, int num_pairs, float2* out,
                        cudaStream_t stream) {
  const int64_t count = num_angles * num_pairs;
  if (count == 0) return {};
  rotations<<<static_cast<unsigned>((count + kThreads - 1) / kThreads), kThreads, 0, stream>>>(
      angles, num_angles, num_scaled, factor, inv_freq, num_pairs, out);
  return launch_status("rotations");
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
