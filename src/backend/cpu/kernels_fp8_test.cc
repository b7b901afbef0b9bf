#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "backend/cpu/test_kernels.h"
#include "base/dtype.h"

namespace anyslot::cpu {
namespace {

/// All codes, the numbers half way between neighbours, and those just beside them.
std::vector<float> numbers_around_fp8() {
  std::vector<float> numbers;
  for (int code = 0; code < 0x7e; ++code) {
    const float low = fp8_e4m3_to_float(static_cast<fp8_e4m3_t>(code));
    const float high = fp8_e4m3_to_float(static_cast<fp8_e4m3_t>(code + 1));
    const float between = (low + high) / 2;
    for (const float number : {low, std::nextafter(between, 0.0F), between,
                               std::nextafter(between, 1e9F), high, std::nextafter(high, 1e9F)}) {
      numbers.push_back(number);
      numbers.push_back(-number);
    }
  }
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float number :
       {449.0F, 464.0F, 480.0F, 1e9F, infinity, -infinity, 1e-30F, std::nanf("")})
    numbers.push_back(number);
  return numbers;
}

TEST(Fp8Keys, AreRoundedAsTheScalarCodeDoes) {
  constexpr int kHeadDim = 16;
  std::vector<float> numbers = numbers_around_fp8();
  numbers.resize((numbers.size() + kHeadDim - 1) / kHeadDim * kHeadDim);
  for (const KernelTable* kernels : usable_kernels()) {
    SCOPED_TRACE(kernels->name);
    for (size_t at = 0; at < numbers.size(); at += kHeadDim) {
      std::vector<fp8_e4m3_t> key(kHeadDim * kBlockTokens);
      std::vector<fp8_e4m3_t> value(kHeadDim * kBlockTokens);
      const TokenSlot slot{reinterpret_cast<std::byte*>(key.data()),
                           reinterpret_cast<std::byte*>(value.data()), 6};
      kernels->fp8_kv->store_token(slot, kHeadDim, {}, &numbers[at], &numbers[at]);
      for (int d = 0; d < kHeadDim; ++d) {
        const fp8_e4m3_t expected = float_to_fp8_e4m3(numbers[at + d]);
        EXPECT_EQ(key[d / 2 * 32 + 6 * 2 + d % 2], expected) << numbers[at + d];
        EXPECT_EQ(value[6 / 2 * 2 * kHeadDim + d * 2], expected) << numbers[at + d];
      }
    }
  }
}

/// Turning by nothing reads each code and writes it again.
TEST(Fp8Keys, TurnedByNothingKeepEveryCode) {
  constexpr int kHeadDim = 16;
  const std::vector<float> cosine(kHeadDim / 2, 1.0F);
  const std::vector<float> sine(kHeadDim / 2, 0.0F);
  std::vector<fp8_e4m3_t> codes(kHeadDim * kBlockTokens);
  for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<fp8_e4m3_t>(i);
  for (const KernelTable* kernels : usable_kernels()) {
    std::vector<fp8_e4m3_t> turned(codes.size());
    const auto* from = reinterpret_cast<const std::byte*>(codes.data());
    kernels->fp8_kv->turn_block(from, from, reinterpret_cast<std::byte*>(turned.data()), kHeadDim,
                                {cosine.data(), sine.data(), kHeadDim / 2});
    for (size_t i = 0; i < codes.size(); ++i) {
      const float code = fp8_e4m3_to_float(codes[i]);
      if (std::isnan(code)) {
        EXPECT_TRUE(std::isnan(fp8_e4m3_to_float(turned[i]))) << kernels->name;
      } else {
        EXPECT_EQ(fp8_e4m3_to_float(turned[i]), code) << kernels->name << ", code " << i;
      }
    }
  }
}

}  // namespace
}  // namespace anyslot::cpu
