#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cstdint>
#include <type_traits>

#include "base/dtype.h"

// The types of elements in device memory, and float32, in which kernels compute.

namespace anyslot::cuda {

using bf16 = __nv_bfloat16;
using fp16 = __half;
using fp8 = __nv_fp8_e4m3;  // of KV only

/// What K and V are multiplied as: fp16 holds every number of fp8.
template <typename T>
using Product = std::conditional_t<std::is_same_v<T, fp8>, fp16, T>;

/// Returns call(T{}) with the type of such activations: where kernels are launched, the list of
/// their instances.
template <typename Call>
auto with_element_type(DType dtype, const Call& call) {
  switch (dtype) {
    case DType::kFloat32:
    case DType::kFloat8E4M3:  // of no activation
      break;
    case DType::kBFloat16:
      return call(bf16{});
    case DType::kFloat16:
      return call(fp16{});
  }
  return call(float{});
}
/// The same for elements of KV.
template <typename Call>
auto with_kv_type(DType dtype, const Call& call) {
  return dtype == DType::kFloat8E4M3 ? call(fp8{}) : with_element_type(dtype, call);
}

__device__ inline float to_float(float x) { return x; }
__device__ inline float to_float(bf16 x) { return __bfloat162float(x); }
__device__ inline float to_float(fp16 x) { return __half2float(x); }
__device__ inline float to_float(fp8 x) { return static_cast<float>(x); }

template <typename T>
__device__ T from_float(float x);
template <>
__device__ inline float from_float<float>(float x) {
  return x;
}
template <>
__device__ inline bf16 from_float<bf16>(float x) {
  return __float2bfloat16_rn(x);
}
template <>
__device__ inline fp16 from_float<fp16>(float x) {
  return __float2half_rn(x);
}
template <>
__device__ inline fp8 from_float<fp8>(float x) {  // beyond the largest number: that one
  fp8 y;
  y.__x = __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E4M3);
  return y;
}

/// Two elements of 16 bits in a register, the first in the lower half.
template <typename T>
__device__ uint32_t pack(float low, float high);
template <>
__device__ inline uint32_t pack<bf16>(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return reinterpret_cast<const uint32_t&>(pair);
}
template <>
__device__ inline uint32_t pack<fp16>(float low, float high) {
  const __half2 pair = __floats2half2_rn(low, high);
  return reinterpret_cast<const uint32_t&>(pair);
}

template <typename T>
__device__ float2 unpack(uint32_t pair);
template <>
__device__ inline float2 unpack<bf16>(uint32_t pair) {
  return __bfloat1622float2(reinterpret_cast<const __nv_bfloat162&>(pair));
}
template <>
__device__ inline float2 unpack<fp16>(uint32_t pair) {
  return __half22float2(reinterpret_cast<const __half2&>(pair));
}

/// Two elements of fp8, the first in the lower byte, as two of fp16.
__device__ inline uint32_t widened(uint32_t pair) {
  const __half2_raw wide =
      __nv_cvt_fp8x2_to_halfraw2(static_cast<__nv_fp8x2_storage_t>(pair), __NV_E4M3);
  return reinterpret_cast<const uint32_t&>(wide);
}
__device__ inline uint32_t narrowed(float low, float high) {
  return __nv_cvt_float2_to_fp8x2({low, high}, __NV_SATFINITE, __NV_E4M3);
}

}  // namespace anyslot::cuda
