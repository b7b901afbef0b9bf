#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "backend/cpu/rate_kernels.h"

namespace anyslot::cpu {
namespace {  // NOLINT: each instruction set has its own copy, compiled with its own flags

/// Sums that no instruction waits for: enough to cover the latency of two units, few enough for 16
/// registers.
constexpr int kSums = 12;
constexpr int kRepeats = 8;  // of all sums in an iteration, so that the loop's own cost vanishes

/// Step: a sum plus the products of two registers. The numbers stay far from 0 and infinity.
template <typename S, typename Step>
float sum_products(int64_t iterations, Step step) {
  typename S::Vec sums[kSums];
  for (auto& sum : sums) sum = S::set(1.0F);
  for (int64_t i = 0; i < iterations; ++i) {
    for (int repeat = 0; repeat < kRepeats; ++repeat) {
#pragma GCC unroll 12
      for (auto& sum : sums) sum = step(sum);
    }
  }
  float total = 0;
  for (const auto& sum : sums) total += S::reduce_add(sum);
  return total;
}

template <typename S>
float multiply_add(int64_t iterations) {
  const typename S::Vec a = S::set(0.5F);
  const typename S::Vec b = S::set(-0x1p-20F);
  return sum_products<S>(iterations, [&](typename S::Vec sum) { return S::fma(a, b, sum); });
}

template <typename S>
constexpr ArithmeticLoop multiply_add_loop() {
  return {multiply_add<S>, int64_t{2} * S::kLanes * kSums * kRepeats};
}

/// One stream per quarter of the data, fetched ahead: the processor's own prefetching ends at every
/// page.
inline uint64_t read_memory(const std::byte* data, size_t bytes) {
  constexpr size_t kStreams = 4;
  constexpr size_t kLine = 64;
  constexpr size_t kAhead = 16 * kLine;
  const size_t part = bytes / kStreams;
  __m256i sums[kStreams];
  for (auto& sum : sums) sum = _mm256_setzero_si256();
  for (size_t at = 0; at < part; at += kLine) {
#pragma GCC unroll 4
    for (size_t s = 0; s < kStreams; ++s) {
      const std::byte* line = data + s * part + at;
      _mm_prefetch(reinterpret_cast<const char*>(line + kAhead), _MM_HINT_T0);
      const auto* halves = reinterpret_cast<const __m256i*>(line);
      sums[s] = _mm256_xor_si256(
          sums[s], _mm256_xor_si256(_mm256_loadu_si256(halves), _mm256_loadu_si256(halves + 1)));
    }
  }
  uint64_t lanes[4];
  const __m256i all =
      _mm256_xor_si256(_mm256_xor_si256(sums[0], sums[1]), _mm256_xor_si256(sums[2], sums[3]));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(lanes), all);
  return lanes[0] ^ lanes[1] ^ lanes[2] ^ lanes[3];
}

}  // namespace
}  // namespace anyslot::cpu
