#include "base/random_normal.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace anyslot {
namespace {

std::vector<bf16_t> numbers(double scale, uint64_t seed, int64_t first, int64_t count) {
  std::vector<bf16_t> out(static_cast<size_t>(count));
  RandomNormal(scale).fill(seed, first, out);
  return out;
}

TEST(RandomNormal, HasTheMomentsAndTailsOfTheNormalDistribution) {
  constexpr int64_t kCount = 1'000'000;
  constexpr double kScale = 0.02;
  double sum = 0;
  double squares = 0;
  double fourths = 0;
  int64_t beyond_one = 0;
  int64_t beyond_two = 0;
  for (const bf16_t number : numbers(kScale, 7, 0, kCount)) {
    const double x = bf16_to_float(number) / kScale;
    ASSERT_LT(std::abs(x), 3.8);
    sum += x;
    squares += x * x;
    fourths += x * x * x * x;
    if (std::abs(x) > 1) ++beyond_one;
    if (std::abs(x) > 2) ++beyond_two;
  }
  EXPECT_NEAR(sum / kCount, 0.0, 0.005);
  EXPECT_NEAR(squares / kCount, 1.0, 0.01);
  EXPECT_NEAR(fourths / kCount, 3.0, 0.1);
  EXPECT_NEAR(static_cast<double>(beyond_one) / kCount, 0.3173, 0.003);
  EXPECT_NEAR(static_cast<double>(beyond_two) / kCount, 0.0455, 0.002);
}

TEST(RandomNormal, NeighboursAndOtherSeedsAreUncorrelated) {
  constexpr int64_t kCount = 200'000;
  const std::vector<bf16_t> a = numbers(1, 1, 0, kCount);
  const std::vector<bf16_t> b = numbers(1, 2, 0, kCount);
  double between_seeds = 0;
  for (const int64_t lag : {1, 2, 3, 4, 5, 64}) {
    double within = 0;
    for (int64_t i = 0; i + lag < kCount; ++i)
      within += bf16_to_float(a[i]) * bf16_to_float(a[i + lag]);
    EXPECT_NEAR(within / static_cast<double>(kCount), 0.0, 0.012) << "lag " << lag;
  }
  for (int64_t i = 0; i < kCount; ++i) between_seeds += bf16_to_float(a[i]) * bf16_to_float(b[i]);
  EXPECT_NEAR(between_seeds / kCount, 0.0, 0.012);
}

TEST(RandomNormal, AnyPartCanBeMadeAlone) {
  const std::vector<bf16_t> whole = numbers(1, 42, 0, 103);
  const std::vector<bf16_t> part = numbers(1, 42, 40, 61);
  for (size_t i = 0; i < part.size(); ++i) EXPECT_EQ(part[i], whole[40 + i]) << i;
  EXPECT_EQ(numbers(1, 42, 0, 103), whole);
  EXPECT_NE(numbers(1, 43, 0, 103), whole);
}

}  // namespace
}  // namespace anyslot
