#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/panel_formats.h"
#include "backend/cpu/simd_avx512_bf16.h"

namespace anyslot::cpu {
namespace {  // NOLINT: each instruction set has its own copy, compiled with its own flags

inline __m512i broadcast4(const void* p) {
  int four_bytes;
  __builtin_memcpy(&four_bytes, p, sizeof four_bytes);
  return _mm512_set1_epi32(four_bytes);
}

/// bfloat16 weights and rows, two products an instruction.
struct Bf16Panel {
  using Simd = Avx512Bf16;
  using Element = bf16_t;
  using Operand = bf16_t;
  using Sum = __m512;
  struct Packed {
    __m512i x;
  };
  static constexpr DType kProduct = DType::kBFloat16;
  static constexpr int kGroup = 2;
  static constexpr int kRows = 4;

  static void prepare_row(const void* x, DType type, int64_t in, int64_t padded_in,
                          std::byte* operand) {
    for (int64_t i = 0; i < padded_in; i += Simd::kLanes) {
      Simd::store_bf16(reinterpret_cast<bf16_t*>(operand) + i, load_of_row<Simd>(x, type, i, in));
    }
  }
  static Sum zero() { return _mm512_setzero_ps(); }
  static Packed load(const bf16_t* p) { return {_mm512_loadu_si512(p)}; }
  static void add_product(Sum& sum, const Packed& b, const bf16_t* a, int64_t) {
    sum = Simd::dot_pairs(sum, b.x, broadcast4(a));
  }
  static __m512 finish(const Sum& sum, const PanelProduct&, const bf16_t*, int) { return sum; }
  static void unpack(const std::byte* panel, int64_t padded_in, std::byte* out, int64_t stride) {
    for (int64_t i = 0; i < padded_in; i += kGroup) {
      __builtin_memcpy(out, panel, kPanelColumns * kGroup * sizeof(bf16_t));
      panel += kPanelColumns * kGroup * sizeof(bf16_t);
      out += static_cast<size_t>(stride) * kGroup * sizeof(bf16_t);
    }
  }
};

/// int8 weights. A row is rounded to 16 bits, as fractions of its largest element, and multiplied
/// as two rows of 8 bits, whose sums are whole numbers: high bytes, and low ones, which count
/// 1/256. The instruction takes unsigned rows, so 128 is added to the high bytes and the sum of
/// the weights, 128 times, subtracted from the result. An operand holds the high bytes, the low
/// ones, and the row's scale.
struct Int8Panel {
  using Simd = Avx512Bf16;
  using Element = int8_t;
  using Operand = uint8_t;
  struct Sum {
    __m512i high;
    __m512i low;
  };
  struct Packed {
    __m512i x;
  };
  static constexpr DType kProduct = DType::kBFloat16;
  static constexpr int kGroup = 4;
  static constexpr int kRows = 2;

  static void prepare_row(const void* x, DType type, int64_t in, int64_t padded_in,
                          std::byte* operand) {
    __m512 largest = _mm512_setzero_ps();
    __mmask16 is_nan = 0;
    for (int64_t i = 0; i < in; i += Simd::kLanes) {
      const __m512 part = load_of_row<Simd>(x, type, i, in);
      is_nan = static_cast<__mmask16>(is_nan | _mm512_cmp_ps_mask(part, part, _CMP_UNORD_Q));
      largest = _mm512_max_ps(largest, _mm512_abs_ps(part));
    }
    constexpr float kLargest16 = 32767.0F;
    const float maximum = Simd::reduce_max(largest);
    const bool is_finite = is_nan == 0 && maximum < __builtin_inff();
    const float scale = is_finite ? maximum / kLargest16 : __builtin_nanf("");
    const __m512 factor = Simd::set(is_finite && maximum > 0 ? kLargest16 / maximum : 0.0F);
    for (int64_t i = 0; i < padded_in; i += Simd::kLanes) {
      const __m512i x16 = _mm512_cvtps_epi32(Simd::mul(load_of_row<Simd>(x, type, i, in), factor));
      const __m512i high = _mm512_add_epi32(_mm512_srai_epi32(x16, 8), _mm512_set1_epi32(128));
      store_bytes(operand + i, high);
      store_bytes(operand + padded_in + i, x16);
    }
    __builtin_memcpy(operand + 2 * padded_in, &scale, sizeof scale);
  }
  static Sum zero() { return {_mm512_setzero_si512(), _mm512_setzero_si512()}; }
  static Packed load(const int8_t* p) { return {_mm512_loadu_si512(p)}; }
  static void add_product(Sum& sum, const Packed& b, const uint8_t* a, int64_t padded_in) {
    sum.high = _mm512_dpbusd_epi32(sum.high, broadcast4(a), b.x);
    sum.low = _mm512_dpbusd_epi32(sum.low, broadcast4(a + padded_in), b.x);
  }
  static __m512 finish(const Sum& sum, const PanelProduct& product, const uint8_t* operand,
                       int column) {
    float scale;
    __builtin_memcpy(&scale, operand + 2 * product.padded_in, sizeof scale);
    const __m512i sums = _mm512_loadu_si512(product.sums + column);
    const __m512i high = _mm512_sub_epi32(sum.high, _mm512_slli_epi32(sums, 7));
    const __m512 total =
        Simd::fma(_mm512_cvtepi32_ps(high), Simd::set(256.0F), _mm512_cvtepi32_ps(sum.low));
    return Simd::mul(Simd::mul(total, Simd::set(scale)), Simd::load(product.scales + column));
  }
  /// Whole numbers up to 127 are exact in bfloat16.
  static void unpack(const std::byte* panel, int64_t padded_in, std::byte* out, int64_t stride) {
    const __m512i evens =
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i odds = _mm512_add_epi32(evens, _mm512_set1_epi32(1));
    const size_t row_bytes = static_cast<size_t>(stride) * 2 * sizeof(bf16_t);
    for (int64_t i = 0; i < padded_in; i += kGroup, out += 2 * row_bytes) {
      for (int c = 0; c < kPanelColumns; c += 16, panel += 64) {
        const auto* weights = reinterpret_cast<const int8_t*>(panel);
        const __m512i low = widen_32(weights);        // columns 0 to 7: in 0 and 1, in 2 and 3, ...
        const __m512i high = widen_32(weights + 32);  // columns 8 to 15
        std::byte* to = out + static_cast<size_t>(c) * 2 * sizeof(bf16_t);
        _mm512_storeu_si512(to, _mm512_permutex2var_epi32(low, evens, high));
        _mm512_storeu_si512(to + row_bytes, _mm512_permutex2var_epi32(low, odds, high));
      }
    }
  }

 private:
  static void store_bytes(std::byte* p, __m512i x) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(x));
  }
  /// 32 numbers as bfloat16, in their order.
  static __m512i widen_32(const int8_t* p) {
    const __m512bh both = _mm512_cvtne2ps_pbh(Simd::load_int8(p + 16), Simd::load_int8(p));
    __m512i result;
    __builtin_memcpy(&result, &both, sizeof result);
    return result;
  }
};

}  // namespace
}  // namespace anyslot::cpu
