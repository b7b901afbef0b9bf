#include "base/dtype.h"

#include <cmath>
#include <limits>

namespace anyslot {

float fp16_to_float(fp16_t value) {
  const uint32_t sign = static_cast<uint32_t>(value & 0x8000U) << 16;
  const uint32_t exponent = (value >> 10) & 0x1fU;
  const uint32_t mantissa = value & 0x3ffU;
  if (exponent == 0) {
    const float magnitude = std::ldexp(static_cast<float>(mantissa), -24);
    return sign != 0 ? -magnitude : magnitude;
  }
  const uint32_t wide = exponent == 31 ? 255 : exponent + 112;
  return std::bit_cast<float>(sign | (wide << 23) | (mantissa << 13));
}

fp16_t float_to_fp16(float value) {
  constexpr uint32_t kInfinity = 0x7f800000U;
  constexpr uint32_t kRoundsToInfinity = 0x477ff000U;  // 65520, halfway to what would come next
  constexpr uint32_t kSmallestNormal = 0x38800000U;    // 2^-14
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000U;
  const uint32_t magnitude = bits & 0x7fffffffU;
  uint32_t rounded = 0;
  if (magnitude > kInfinity) {
    rounded = 0x7e00U;
  } else if (magnitude >= kRoundsToInfinity) {
    rounded = 0x7c00U;
  } else if (magnitude < kSmallestNormal) {
    // Subnormals are multiples of 2^-24, and so are float32 numbers from 0.5 on.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
    rounded = std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(0.5F);
  } else {
    rounded = (magnitude - (112U << 23) + 0xfffU + ((magnitude >> 13) & 1U)) >> 13;
  }
  return static_cast<fp16_t>(sign | rounded);
}

float fp8_e4m3_to_float(fp8_e4m3_t value) {
  const int exponent = (value >> 3) & 0xf;
  const int mantissa = value & 0x7;
  float magnitude = 0;
  if ((value & 0x7f) == 0x7f) {
    magnitude = std::numeric_limits<float>::quiet_NaN();
  } else if (exponent == 0) {
    magnitude = std::ldexp(static_cast<float>(mantissa), -9);
  } else {
    magnitude = std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
  }
  return std::copysign(magnitude, (value & 0x80) != 0 ? -1.0F : 1.0F);
}

fp8_e4m3_t float_to_fp8_e4m3(float value) {
  constexpr uint32_t kInfinity = 0x7f800000U;
  constexpr uint32_t kLargest = 0x43e00000U;         // 448
  constexpr uint32_t kSmallestNormal = 0x3c800000U;  // 2^-6
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 24) & 0x80U;
  const uint32_t magnitude = bits & 0x7fffffffU;
  uint32_t rounded = 0;
  if (magnitude > kInfinity) {
    rounded = 0x7fU;
  } else if (magnitude >= kLargest) {
    rounded = 0x7eU;
  } else if (magnitude < kSmallestNormal) {
    // Subnormals are multiples of 2^-9, and so are float32 numbers from 2^14 on.
    const float shifted = std::bit_cast<float>(magnitude) + 0x1p14F;
    rounded = std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(0x1p14F);
  } else {
    rounded = (magnitude - (120U << 23) + 0x7ffffU + ((magnitude >> 20) & 1U)) >> 20;
  }
  return static_cast<fp8_e4m3_t>(sign | rounded);
}

float load_element(const void* data, DType dtype, size_t index) {
  switch (dtype) {
    case DType::kFloat32:
      return static_cast<const float*>(data)[index];
    case DType::kBFloat16:
      return bf16_to_float(static_cast<const bf16_t*>(data)[index]);
    case DType::kFloat16:
      return fp16_to_float(static_cast<const fp16_t*>(data)[index]);
    case DType::kFloat8E4M3:
      return fp8_e4m3_to_float(static_cast<const fp8_e4m3_t*>(data)[index]);
  }
  return 0;
}

void store_element(void* data, DType dtype, size_t index, float value) {
  switch (dtype) {
    case DType::kFloat32:
      static_cast<float*>(data)[index] = value;
      break;
    case DType::kBFloat16:
      static_cast<bf16_t*>(data)[index] = float_to_bf16(value);
      break;
    case DType::kFloat16:
      static_cast<fp16_t*>(data)[index] = float_to_fp16(value);
      break;
    case DType::kFloat8E4M3:
      static_cast<fp8_e4m3_t*>(data)[index] = float_to_fp8_e4m3(value);
      break;
  }
}

}  // namespace anyslot
