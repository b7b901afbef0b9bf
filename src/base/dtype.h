#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace anyslot {

/// kFloat8E4M3: of KV only.
enum class DType : uint8_t { kFloat32, kBFloat16, kFloat16, kFloat8E4M3 };

constexpr size_t dtype_size(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return 4;
    case DType::kBFloat16:
    case DType::kFloat16:
      return 2;
    case DType::kFloat8E4M3:
      return 1;
  }
  return 0;
}

constexpr std::string_view dtype_name(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return "float32";
    case DType::kBFloat16:
      return "bfloat16";
    case DType::kFloat16:
      return "float16";
    case DType::kFloat8E4M3:
      return "fp8_e4m3";
  }
  return "?";
}

/// A bfloat16 as stored: the upper half of a float32.
using bf16_t = uint16_t;

inline float bf16_to_float(bf16_t value) {
  return std::bit_cast<float>(static_cast<uint32_t>(value) << 16);
}

/// Rounds to nearest even; NaN stays NaN.
inline bf16_t float_to_bf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return static_cast<bf16_t>((bits >> 16) | 0x40U);
  return static_cast<bf16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

/// IEEE half precision.
using fp16_t = uint16_t;
float fp16_to_float(fp16_t value);
/// Rounds to nearest even; what is beyond the largest, 65504, becomes infinite, and NaN stays NaN.
fp16_t float_to_fp16(float value);

/// 1 sign, 4 exponent (bias 7) and 3 mantissa bits, as in "FP8 Formats for Deep Learning"
/// (Micikevicius et al., 2022): no infinities, and one NaN per sign, of all ones. The largest is
/// 448, the smallest 2^-9.
using fp8_e4m3_t = uint8_t;
float fp8_e4m3_to_float(fp8_e4m3_t value);
/// Rounds to nearest even; what is beyond the largest becomes the largest, and NaN stays NaN.
fp8_e4m3_t float_to_fp8_e4m3(float value);

/// Element `index` of an array, and back, rounded as its type asks.
float load_element(const void* data, DType dtype, size_t index);
void store_element(void* data, DType dtype, size_t index, float value);

}  // namespace anyslot
