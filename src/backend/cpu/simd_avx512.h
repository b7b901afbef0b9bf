#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "backend/cpu/simd_avx2.h"

namespace anyslot::cpu {
namespace {  // NOLINT: each instruction set has its own copy, compiled with its own flags

/// Vectors of 16 floats. The members are those of Avx2.
struct Avx512 {
  using Vec = __m512;
  static constexpr int kLanes = 16;

  static Vec load(const float* p) { return _mm512_loadu_ps(p); }
  static void store(float* p, Vec x) { _mm512_storeu_ps(p, x); }
  static Vec zero() { return _mm512_setzero_ps(); }
  static Vec set(float x) { return _mm512_set1_ps(x); }
  static Vec add(Vec a, Vec b) { return _mm512_add_ps(a, b); }
  static Vec sub(Vec a, Vec b) { return _mm512_sub_ps(a, b); }
  static Vec mul(Vec a, Vec b) { return _mm512_mul_ps(a, b); }
  static Vec div(Vec a, Vec b) { return _mm512_div_ps(a, b); }
  static Vec max(Vec a, Vec b) { return _mm512_max_ps(a, b); }
  static Vec min(Vec a, Vec b) { return _mm512_min_ps(a, b); }
  static Vec fma(Vec a, Vec b, Vec c) { return _mm512_fmadd_ps(a, b, c); }
  static Vec fnma(Vec a, Vec b, Vec c) { return _mm512_fnmadd_ps(a, b, c); }
  static Vec round(Vec x) {
    return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }

  /// scale_by_power underflows by itself, to 0 from here on.
  static constexpr float kExpLowest = -110.0F;
  static Vec scale_by_power(Vec x, Vec n) { return _mm512_scalef_ps(x, n); }
  static Vec zero_below(Vec x, Vec, float) { return x; }
  static constexpr float kExp2Lowest = -150.0F;
  static Vec at_least(Vec x, float) { return x; }

  using Mask = __mmask16;
  static Mask lanes(int begin, int end) {
    return static_cast<Mask>(lanes_below(end) & ~lanes_below(begin));
  }
  static Vec select(Mask mask, Vec x, Vec other) { return _mm512_mask_blend_ps(mask, other, x); }
  static Mask below(Vec a, Vec b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
  static bool any_above(Vec x, Vec limit) { return _mm512_cmp_ps_mask(x, limit, _CMP_GT_OQ) != 0; }

  static float reduce_add(Vec x) { return _mm512_reduce_add_ps(x); }
  static float reduce_max(Vec x) { return _mm512_reduce_max_ps(x); }

  static Vec load_bf16(const uint16_t* p) {
    const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16));
  }
  static void store_bf16(uint16_t* p, Vec x) {
    const __m512i high = _mm512_srli_epi32(rounded_bits(x), 16);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(high));
  }
  static Vec load_int8(const int8_t* p) {
    const __m128i x = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(x));
  }
  static void load_bf16_pairs(const void* p, Vec& first, Vec& second) {
    const __m512i x = _mm512_loadu_si512(p);
    first = _mm512_castsi512_ps(_mm512_slli_epi32(x, 16));
    second = _mm512_castsi512_ps(_mm512_and_si512(x, _mm512_set1_epi32(-65536)));
  }
  static void store_bf16_pairs(void* p, Vec first, Vec second) {
    const __m512i low = _mm512_srli_epi32(rounded_bits(first), 16);
    const __m512i high = _mm512_and_si512(rounded_bits(second), _mm512_set1_epi32(-65536));
    _mm512_storeu_si512(p, _mm512_or_si512(low, high));
  }
  // fp8_e4m3 in two halves, as Avx2 does.
  static constexpr float kFp8Unit = Avx2::kFp8Unit;
  static void load_fp8_pairs(const void* p, Vec& first, Vec& second) {
    const auto* bytes = static_cast<const std::byte*>(p);
    __m256 halves[2][2];
    Avx2::load_fp8_pairs(bytes, halves[0][0], halves[1][0]);
    Avx2::load_fp8_pairs(bytes + 2 * Avx2::kLanes, halves[0][1], halves[1][1]);
    first = joined(halves[0][0], halves[0][1]);
    second = joined(halves[1][0], halves[1][1]);
  }
  static void store_fp8_pairs(void* p, Vec first, Vec second) {
    auto* bytes = static_cast<std::byte*>(p);
    Avx2::store_fp8_pairs(bytes, lower(first), lower(second));
    Avx2::store_fp8_pairs(bytes + 2 * Avx2::kLanes, upper(first), upper(second));
  }
  static void store_fp8(uint8_t* p, Vec x) {
    Avx2::store_fp8(p, lower(x));
    Avx2::store_fp8(p + Avx2::kLanes, upper(x));
  }

 private:
  static __m256 lower(Vec x) { return _mm512_castps512_ps256(x); }
  static __m256 upper(Vec x) { return _mm512_extractf32x8_ps(x, 1); }
  static Vec joined(__m256 low, __m256 high) {
    return _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
  }
  static uint32_t lanes_below(int end) {
    return end <= 0 ? 0U : end >= kLanes ? 0xffffU : (1U << end) - 1U;
  }
  static __m512i rounded_bits(Vec x) {
    const __m512i bits = _mm512_castps_si512(x);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i rounded =
        _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    const __mmask16 is_nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    return _mm512_mask_or_epi32(rounded, is_nan, bits, _mm512_set1_epi32(0x400000));
  }
};

}  // namespace
}  // namespace anyslot::cpu
