#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace anyslot::cpu {
namespace {  // NOLINT: each instruction set has its own copy, compiled with its own flags

/// Vectors of 8 floats.
struct Avx2 {
  using Vec = __m256;
  static constexpr int kLanes = 8;

  static Vec load(const float* p) { return _mm256_loadu_ps(p); }
  static void store(float* p, Vec x) { _mm256_storeu_ps(p, x); }
  static Vec zero() { return _mm256_setzero_ps(); }
  static Vec set(float x) { return _mm256_set1_ps(x); }
  static Vec add(Vec a, Vec b) { return _mm256_add_ps(a, b); }
  static Vec sub(Vec a, Vec b) { return _mm256_sub_ps(a, b); }
  static Vec mul(Vec a, Vec b) { return _mm256_mul_ps(a, b); }
  static Vec div(Vec a, Vec b) { return _mm256_div_ps(a, b); }
  /// The second operand when one is NaN, as are max and min of the hardware.
  static Vec max(Vec a, Vec b) { return _mm256_max_ps(a, b); }
  static Vec min(Vec a, Vec b) { return _mm256_min_ps(a, b); }
  /// a * b + c
  static Vec fma(Vec a, Vec b, Vec c) { return _mm256_fmadd_ps(a, b, c); }
  /// c - a * b
  static Vec fnma(Vec a, Vec b, Vec c) { return _mm256_fnmadd_ps(a, b, c); }
  static Vec round(Vec x) {
    return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }

  /// Below it exp is 0. 2^n of its n is the smallest that scale_by_power can form.
  static constexpr float kExpLowest = -87.33F;
  /// x * 2^n for whole n in [-126, 127].
  static Vec scale_by_power(Vec x, Vec n) {
    const __m256i exponent = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
    return _mm256_mul_ps(x, _mm256_castsi256_ps(_mm256_slli_epi32(exponent, 23)));
  }
  /// x where y >= limit (or is NaN), else 0.
  static Vec zero_below(Vec x, Vec y, float limit) {
    return _mm256_andnot_ps(_mm256_cmp_ps(y, set(limit), _CMP_LT_OQ), x);
  }
  /// Below it exp2 is 0. Every whole number from here on is an exponent of scale_by_power.
  static constexpr float kExp2Lowest = -126.0F;
  /// The larger one, where the functions above do not work by themselves below `limit`.
  static Vec at_least(Vec x, float limit) { return max(set(limit), x); }

  using Mask = __m256;
  /// Lanes [begin, end). Any begin and end.
  static Mask lanes(int begin, int end) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i below_begin = _mm256_cmpgt_epi32(_mm256_set1_epi32(begin), lane);
    const __m256i below_end = _mm256_cmpgt_epi32(_mm256_set1_epi32(end), lane);
    return _mm256_castsi256_ps(_mm256_andnot_si256(below_begin, below_end));
  }
  /// x in the lanes of the mask, `other` in the rest.
  static Vec select(Mask mask, Vec x, Vec other) { return _mm256_blendv_ps(other, x, mask); }
  static Mask below(Vec a, Vec b) { return _mm256_cmp_ps(a, b, _CMP_LT_OQ); }
  static bool any_above(Vec x, Vec limit) {
    return _mm256_movemask_ps(_mm256_cmp_ps(x, limit, _CMP_GT_OQ)) != 0;
  }

  static float reduce_add(Vec x) {
    __m128 sum = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    sum = _mm_add_ps(sum, _mm_movehl_ps(sum, sum));
    return _mm_cvtss_f32(_mm_add_ss(sum, _mm_movehdup_ps(sum)));
  }
  static float reduce_max(Vec x) {
    __m128 top = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    top = _mm_max_ps(top, _mm_movehl_ps(top, top));
    return _mm_cvtss_f32(_mm_max_ss(top, _mm_movehdup_ps(top)));
  }

  /// kLanes bfloat16 that stand side by side.
  static Vec load_bf16(const uint16_t* p) {
    const __m128i x = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(x), 16));
  }
  static void store_bf16(uint16_t* p, Vec x) {
    const __m256i high = _mm256_srli_epi32(rounded_bits(x), 16);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), lower_halves(high));
  }
  /// kLanes whole numbers that stand side by side.
  static Vec load_int8(const int8_t* p) {
    const __m128i x = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(x));
  }
  /// The first and the second ones of kLanes pairs of bfloat16.
  static void load_bf16_pairs(const void* p, Vec& first, Vec& second) {
    const __m256i x = _mm256_loadu_si256(static_cast<const __m256i*>(p));
    first = _mm256_castsi256_ps(_mm256_slli_epi32(x, 16));
    second = _mm256_castsi256_ps(_mm256_and_si256(x, _mm256_set1_epi32(-65536)));
  }
  static void store_bf16_pairs(void* p, Vec first, Vec second) {
    const __m256i low = _mm256_srli_epi32(rounded_bits(first), 16);
    const __m256i high = _mm256_and_si256(rounded_bits(second), _mm256_set1_epi32(-65536));
    _mm256_storeu_si256(static_cast<__m256i*>(p), _mm256_or_si256(low, high));
  }

  /// A number of fp8_e4m3, widened, is to be multiplied by this.
  static constexpr float kFp8Unit = 256;
  /// The first and the second ones of kLanes pairs of fp8_e4m3: as float16, whose exponent is
  /// biased by 8 more. NaN stays NaN.
  static void load_fp8_pairs(const void* p, Vec& first, Vec& second) {
    const __m128i pairs = _mm_loadu_si128(static_cast<const __m128i*>(p));
    const __m256i upper_bytes = _mm256_setr_epi8(
        -1, 0, -1, 2, -1, 4, -1, 6, -1, 8, -1, 10, -1, 12, -1, 14,  // of first ones
        -1, 1, -1, 3, -1, 5, -1, 7, -1, 9, -1, 11, -1, 13, -1, 15);
    const __m256i x = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(pairs), upper_bytes);
    const __m256i magnitude = _mm256_set1_epi16(0x7f00);
    const __m256i is_nan = _mm256_cmpeq_epi16(_mm256_and_si256(x, magnitude), magnitude);
    const __m256i sign_and_rest = _mm256_set1_epi16(static_cast<int16_t>(0xbf80));
    const __m256i halves =
        _mm256_or_si256(is_nan, _mm256_and_si256(_mm256_srai_epi16(x, 1), sign_and_rest));
    first = _mm256_cvtph_ps(_mm256_castsi256_si128(halves));
    second = _mm256_cvtph_ps(_mm256_extracti128_si256(halves, 1));
  }
  static void store_fp8_pairs(void* p, Vec first, Vec second) {
    const __m256i pairs =
        _mm256_or_si256(fp8_codes(first), _mm256_slli_epi32(fp8_codes(second), 8));
    _mm_storeu_si128(static_cast<__m128i*>(p), lower_halves(pairs));
  }
  /// kLanes fp8_e4m3 that stand side by side.
  static void store_fp8(uint8_t* p, Vec x) {
    const __m128i words = lower_halves(fp8_codes(x));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm_packus_epi16(words, words));
  }

 private:
  /// Of each lane, whose upper half is 0.
  static __m128i lower_halves(__m256i x) {
    return _mm_packus_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
  }
  /// As float_to_fp8_e4m3, one in each lane.
  static __m256i fp8_codes(Vec x) {
    const __m256i bits = _mm256_castps_si256(x);
    const Vec magnitude = min(set(448.0F), _mm256_andnot_ps(set(-0.0F), x));  // NaN stays
    const __m256i magnitude_bits = _mm256_castps_si256(magnitude);
    // Subnormals are multiples of 2^-9, and so are float32 numbers from 2^14 on.
    const __m256i small = _mm256_sub_epi32(_mm256_castps_si256(add(magnitude, set(0x1p14F))),
                                           _mm256_castps_si256(set(0x1p14F)));
    const __m256i odd =
        _mm256_and_si256(_mm256_srli_epi32(magnitude_bits, 20), _mm256_set1_epi32(1));
    const __m256i rounding = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7ffff - (120 << 23)));
    const __m256i normal = _mm256_srli_epi32(_mm256_add_epi32(magnitude_bits, rounding), 20);
    Vec code = _mm256_blendv_ps(_mm256_castsi256_ps(normal), _mm256_castsi256_ps(small),
                                below(magnitude, set(0x1p-6F)));
    code = _mm256_blendv_ps(code, _mm256_castsi256_ps(_mm256_set1_epi32(0x7f)),
                            _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
    const __m256i sign = _mm256_and_si256(_mm256_srli_epi32(bits, 24), _mm256_set1_epi32(0x80));
    return _mm256_or_si256(_mm256_castps_si256(code), sign);
  }
  /// The upper half of each lane is x as bfloat16, rounded to nearest even.
  static __m256i rounded_bits(Vec x) {
    const __m256i bits = _mm256_castps_si256(x);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i rounded =
        _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    const Vec is_nan = _mm256_cmp_ps(x, x, _CMP_UNORD_Q);
    return _mm256_castps_si256(
        _mm256_blendv_ps(_mm256_castsi256_ps(rounded), _mm256_castsi256_ps(quiet), is_nan));
  }
};

}  // namespace
}  // namespace anyslot::cpu
