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
  static void store_bf16(uint16_t* p, Vec x, Vec y) {
    const __m512bh rounded = _mm512_cvtne2ps_pbh(y, x);
    __builtin_memcpy(p, &rounded, sizeof rounded);
  }
  static void store_bf16_pairs(void* p, Vec first, Vec second) {
    __m512i halves;  // all first ones, then all second ones
    const __m512bh rounded = _mm512_cvtne2ps_pbh(second, first);
    __builtin_memcpy(&halves, &rounded, sizeof halves);
    _mm512_storeu_si512(p, _mm512_permutexvar_epi16(interleaving(), halves));
  }
  /// sum + first(a) * first(b) + second(a) * second(b), of pairs.
  static Vec dot_pairs(Vec sum, __m512i a, __m512i b) {
    return _mm512_dpbf16_ps(sum, as_bf16(a), as_bf16(b));
  }

 private:
  static __m512i interleaving() {
    const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    return _mm512_add_epi32(_mm512_mullo_epi32(lanes, _mm512_set1_epi32(0x10001)),
                            _mm512_set1_epi32(0x100000));
  }
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
