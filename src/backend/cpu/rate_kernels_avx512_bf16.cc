#include "backend/cpu/rate_loops.h"
#include "backend/cpu/simd_avx512_bf16.h"

namespace anyslot::cpu {

namespace {

float multiply_add_pairs(int64_t iterations) {
  const __m512i a = _mm512_set1_epi32(0x3f003f00);                    // 0.5
  const __m512i b = _mm512_set1_epi32(static_cast<int>(0xb580b580));  // -2^-20
  return sum_products<Avx512Bf16>(iterations,
                                  [&](__m512 sum) { return Avx512Bf16::dot_pairs(sum, a, b); });
}

}  // namespace

constinit const RateKernels kAvx512Bf16RateKernels = {
    "avx512_bf16", multiply_add_loop<Avx512Bf16>(),
    ArithmeticLoop{multiply_add_pairs, int64_t{4} * Avx512Bf16::kLanes* kSums* kRepeats},
    read_memory};

}  // namespace anyslot::cpu
