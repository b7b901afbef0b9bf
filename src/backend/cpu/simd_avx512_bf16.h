#pragma once

#include "backend/cpu/simd_avx512.h"

namespace anyslot::cpu {
namespace {  // NOLINT: each instruction set has its own copy, compiled with its own flags

/// Avx512 with the instructions for bfloat16, which round to nearest even and take subnormal
/// numbers for 0.
struct Avx512Bf16 : Avx512 {
  static void store_bf16(uint16_t* p, Vec x) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), bits(_mm512_cvtneps_pbh(x)));
  }
  static void store_bf16_pairs(void* p, Vec first, Vec second) {
    const __m512i low = _mm512_cvtepu16_epi32(bits(_mm512_cvtneps_pbh(first)));
    const __m512i high = _mm512_cvtepu16_epi32(bits(_mm512_cvtneps_pbh(second)));
    _mm512_storeu_si512(p, _mm512_or_si512(low, _mm512_slli_epi32(high, 16)));
  }
  /// sum + first(a) * first(b) + second(a) * second(b), of pairs.
  static Vec dot_pairs(Vec sum, __m512i a, __m512i b) {
    return _mm512_dpbf16_ps(sum, as_bf16(a), as_bf16(b));
  }

 private:
  static __m256i bits(__m256bh x) {
    __m256i result;
    __builtin_memcpy(&result, &x, sizeof result);
    return result;
  }
  static __m512bh as_bf16(__m512i x) {
    __m512bh result;
    __builtin_memcpy(&result, &x, sizeof result);
    return result;
  }
};

}  // namespace
}  // namespace anyslot::cpu
