#include <climits>

#include "backend/cuda/cuda_check.h"
#include "backend/cuda/elements.cuh"
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
template <typename T>
__device__ void store_quad(T* to, float4 x) {
  *reinterpret_cast<uint2*>(to) = {pack<T>(x.x, x.y), pack<T>(x.z, x.w)};
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

/// Of parts of `cols` columns, one per block; out may be x.
template <typename T>
__global__ void rms_norm(const float* x, int64_t x_stride, const float* weight, float epsilon,
                         T* out, int64_t out_stride, int64_t cols) {
  const float* from = x + blockIdx.x * x_stride + blockIdx.y * cols;
  T* to = out + blockIdx.x * out_stride + blockIdx.y * cols;
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

__global__ void add_bias(float* x, int64_t stride, const float* bias, int64_t cols) {
  float* row = x + blockIdx.x * stride;
  for (int64_t c = threadIdx.x; c < cols; c += kThreads) row[c] += bias[c];
}

/// out may be x.
template <typename T>
__global__ void scale(const float* x, int64_t x_stride, float factor, T* out, int64_t out_stride,
                      int64_t cols) {
  const float* from = x + blockIdx.x * x_stride;
  T* to = out + blockIdx.x * out_stride;
  for (int64_t c = threadIdx.x; c < cols; c += kThreads) to[c] = from_float<T>(factor * from[c]);
}

__global__ void add_scaled(const float* x, int64_t x_stride, float factor, float* out,
                           int64_t out_stride, int64_t cols) {
  const float* from = x + blockIdx.x * x_stride;
  float* to = out + blockIdx.x * out_stride;
  for (int64_t c = threadIdx.x; c < cols; c += kThreads) to[c] += factor * from[c];
}

struct Silu {
  static __device__ float of(float x) { return x / (1.0F + expf(-x)); }
};
/// x / 2 * (1 + tanh(y)) is x / (1 + exp(-2 y)).
struct GeluTanh {
  static __device__ float of(float x) {
    constexpr float kTwiceRootOf2ByPi = 1.595769121605731F;
    return x / (1.0F + expf(-kTwiceRootOf2ByPi * (x + 0.044715F * x * x * x)));
  }
};

template <typename Function, typename T>
__global__ void gated(const float* gate_up, int64_t stride, T* out, int64_t out_stride,
                      int64_t cols) {
  const int64_t c = int64_t{blockIdx.y} * kThreads + threadIdx.x;
  if (c >= cols) return;
  const float* from = gate_up + blockIdx.x * stride;
  out[blockIdx.x * out_stride + c] = from_float<T>(Function::of(from[c]) * from[cols + c]);
}

__global__ void soft_cap(float* x, int64_t stride, float cap, int64_t cols) {
  float* row = x + blockIdx.x * stride;
  for (int64_t c = threadIdx.x; c < cols; c += kThreads) row[c] = cap * tanhf(row[c] / cap);
}

__global__ void gather(const float* x, int64_t x_stride, const int32_t* indices, float* out,
                       int64_t out_stride, int64_t cols) {
  const float* from = x + indices[blockIdx.x] * x_stride;
  float* to = out + blockIdx.x * out_stride;
  for (int64_t c = threadIdx.x; c < cols; c += kThreads) to[c] = from[c];
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

}  // namespace

Status launch_widen(const TensorView& x, const TensorView& out, cudaStream_t stream) {
  if (x.rows == 0 || x.cols == 0) return {};
  const auto grid = static_cast<unsigned>(x.rows);
  with_element_type(x.dtype, [&]<typename T>(T) {
    widen<<<grid, kThreads, 0, stream>>>(static_cast<const T*>(x.data), x.row_stride,
                                         static_cast<float*>(out.data), out.row_stride, x.cols);
  });
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
  with_element_type(out.dtype,
                    [&]<typename T>(T) { start_rms_norm<T>(x, weight, epsilon, out, stream); });
  return launch_status("rms_norm");
}

Status launch_rms_norm_parts(const TensorView& x, const float* weight, int64_t part, float epsilon,
                             cudaStream_t stream) {
  if (x.rows == 0 || x.cols == 0) return {};
  const dim3 grid(static_cast<unsigned>(x.rows), static_cast<unsigned>(x.cols / part));
  auto* data = static_cast<float*>(x.data);
  rms_norm<<<grid, kThreads, 0, stream>>>(data, x.row_stride, weight, epsilon, data, x.row_stride,
                                          part);
  return launch_status("rms_norm_parts");
}

Status launch_add_bias(const TensorView& x, const float* bias, cudaStream_t stream) {
  if (x.rows == 0 || x.cols == 0) return {};
  add_bias<<<static_cast<unsigned>(x.rows), kThreads, 0, stream>>>(static_cast<float*>(x.data),
                                                                   x.row_stride, bias, x.cols);
  return launch_status("add_bias");
}

Status launch_scale(const TensorView& x, float factor, const TensorView& out, cudaStream_t stream) {
  if (x.rows == 0 || x.cols == 0) return {};
  const auto grid = static_cast<unsigned>(x.rows);
  with_element_type(out.dtype, [&]<typename T>(T) {
    scale<<<grid, kThreads, 0, stream>>>(static_cast<const float*>(x.data), x.row_stride, factor,
                                         static_cast<T*>(out.data), out.row_stride, x.cols);
  });
  return launch_status("scale");
}

Status launch_add_scaled(const TensorView& x, float factor, const TensorView& out,
                         cudaStream_t stream) {
  if (x.rows == 0 || x.cols == 0) return {};
  add_scaled<<<static_cast<unsigned>(x.rows), kThreads, 0, stream>>>(
      static_cast<const float*>(x.data), x.row_stride, factor, static_cast<float*>(out.data),
      out.row_stride, x.cols);
  return launch_status("add_scaled");
}

namespace {

template <typename Function>
Status launch_gated_by(const TensorView& gate_up, const TensorView& out, cudaStream_t stream) {
  if (out.rows == 0 || out.cols == 0) return {};
  const dim3 grid(static_cast<unsigned>(out.rows),
                  static_cast<unsigned>((out.cols + kThreads - 1) / kThreads));
  with_element_type(out.dtype, [&]<typename T>(T) {
    gated<Function><<<grid, kThreads, 0, stream>>>(static_cast<const float*>(gate_up.data),
                                                   gate_up.row_stride, static_cast<T*>(out.data),
                                                   out.row_stride, out.cols);
  });
  return launch_status("gated");
}

}  // namespace

Status launch_gated(Activation activation, const TensorView& gate_up, const TensorView& out,
                    cudaStream_t stream) {
  return activation == Activation::kSilu ? launch_gated_by<Silu>(gate_up, out, stream)
                                         : launch_gated_by<GeluTanh>(gate_up, out, stream);
}

Status launch_soft_cap(const TensorView& x, float cap, cudaStream_t stream) {
  if (x.rows == 0 || x.cols == 0) return {};
  soft_cap<<<static_cast<unsigned>(x.rows), kThreads, 0, stream>>>(static_cast<float*>(x.data),
                                                                   x.row_stride, cap, x.cols);
  return launch_status("soft_cap");
}

Status launch_gather(const TensorView& x, const int32_t* indices, const TensorView& out,
                     cudaStream_t stream) {
  if (out.rows == 0 || out.cols == 0) return {};
  gather<<<static_cast<unsigned>(out.rows), kThreads, 0, stream>>>(
      static_cast<const float*>(x.data), x.row_stride, indices, static_cast<float*>(out.data),
      out.row_stride, out.cols);
  return launch_status("gather_sampled");
}

Status launch_argmax(const TensorView& x, int32_t* tokens, cudaStream_t stream) {
  if (x.rows == 0) return {};
  argmax<<<static_cast<unsigned>(x.rows), kArgmaxThreads, 0, stream>>>(
      static_cast<const float*>(x.data), x.row_stride, static_cast<int>(x.cols), tokens);
  return launch_status("argmax");
}

}  // namespace anyslot::cuda
