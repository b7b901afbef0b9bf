#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "base/dtype.h"

// The types of elements in device memory, and float32, in which kernels compute.

namespace anyslot::cuda {

using bf16 = __nv_bfloat16;
using fp16 = __half;

/// Returns call(T{}) with the type of such elements: where kernels are launched, the list of their
/// instances.
template <typename Call>
auto with_element_type(DType dtype, const Call& call) {
  switch (dtype) {
    case DType::kFloat32:
    case DType::kFloat8E4M3:  // a pool of it is refused
      break;
    case DType::kBFloat16:
      return call(bf16{});
    case DType::kFloat16:
      return call(fp16{});
  }
  return call(float{});
}

__device__ inline float to_float(float x) { return x; }
__device__ inline float to_float(bf16 x) { return __bfloat162float(x); }
__device__ inline float to_float(fp16 x) { return __half2float(x); }

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

}  // namespace anyslot::cuda
