#include "random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "workload.h"

namespace anyslot::bench {
namespace {

double chi_square(const std::vector<double>& seen, const std::vector<double>& expected) {
  double sum = 0;
  for (size_t i = 0; i < seen.size(); ++i) {
    sum += (seen[i] - expected[i]) * (seen[i] - expected[i]) / expected[i];
  }
  return sum;
}

TEST(RandomStream, IsSplitMix64OfItsSeedAndStream) {
  RandomStream a(7, 1);
  RandomStream again(7, 1);
  RandomStream other(7, 2);
  const uint64_t first = a.next();
  EXPECT_EQ(first, again.next());
  EXPECT_NE(first, other.next());
  EXPECT_NE(first, RandomStream(8, 1).next());
}

TEST(RandomStream, DrawsEachNumberBelowItsBoundAsOften) {
  constexpr int kDraws = 60000;
  RandomStream random(1, 0);
  std::vector<double> seen(6, 0);
  for (int i = 0; i < kDraws; ++i) ++seen[random.below(6)];
  EXPECT_LT(chi_square(seen, std::vector<double>(6, kDraws / 6.0)), 20.5);  // 99.9%, 5 degrees
}

TEST(RandomStream, GammaHasMeanOneAndTheVarianceOfItsShape) {
  constexpr int kDraws = 100000;
  for (const double shape : {0.3, 1.0, 4.0}) {
    RandomStream random(3, 0);
    double sum = 0;
    double squares = 0;
    for (int i = 0; i < kDraws; ++i) {
      const double x = random.gamma(shape);
      ASSERT_GE(x, 0);
      sum += x;
      squares += x * x;
    }
    const double mean = sum / kDraws;
    EXPECT_NEAR(mean, 1, 0.02) << shape;
    EXPECT_NEAR(squares / kDraws - mean * mean, 1 / shape, 0.08 / shape) << shape;
  }
}

TEST(RankedChoice, FollowsZipfsLaw) {
  constexpr size_t kRanks = 50;
  constexpr int kDraws = 100000;
  constexpr double kExponent = 1.1;
  const RankedChoice choice(kRanks, kExponent);
  RandomStream random(5, 0);
  std::vector<double> seen(kRanks, 0);
  for (int i = 0; i < kDraws; ++i) ++seen[choice.draw(random)];
  double sum = 0;
  for (size_t rank = 1; rank <= kRanks; ++rank) sum += 1 / std::pow(double(rank), kExponent);
  std::vector<double> expected;
  for (size_t rank = 1; rank <= kRanks; ++rank) {
    expected.push_back(kDraws / std::pow(double(rank), kExponent) / sum);
  }
  EXPECT_LT(chi_square(seen, expected), 85.4);  // 99.9%, 49 degrees
}

TEST(RankedChoice, DrawsDifferentRanksEvenWhenOneHasAllTheWeight) {
  RandomStream random(9, 0);
  const RankedChoice choice(12, 30);
  const std::vector<size_t> ranks = choice.draw_different(12, random);
  EXPECT_EQ(std::set<size_t>(ranks.begin(), ranks.end()).size(), 12U);
  EXPECT_EQ(ranks.front(), 0U);
}

TEST(ArrivalTimes, AreAPoissonProcess) {
  ArrivalOptions options;
  options.request_rate = 5;
  const std::vector<double> times = arrival_times(options, 20001, 11);
  constexpr size_t kMost = 12;  // arrivals in a second, and more of them
  constexpr size_t kSeconds = 3900;
  ASSERT_GT(times.back(), kSeconds);
  std::vector<int> per_second(kSeconds, 0);
  for (size_t i = 1; i < times.size(); ++i) {  // the first one is at 0 by definition
    if (times[i] < kSeconds) ++per_second[static_cast<size_t>(times[i])];
  }
  std::vector<double> seen(kMost + 1, 0);
  for (const int count : per_second) ++seen[std::min<size_t>(static_cast<size_t>(count), kMost)];
  std::vector<double> expected;
  double probability = std::exp(-5.0);
  double rest = 1;
  for (size_t k = 0; k < kMost; ++k) {
    expected.push_back(kSeconds * probability);
    rest -= probability;
    probability *= 5.0 / static_cast<double>(k + 1);
  }
  expected.push_back(kSeconds * rest);
  EXPECT_LT(chi_square(seen, expected), 32.9);  // 99.9%, 12 degrees
}

TEST(ArrivalTimes, AreAllZeroAtAnInfiniteRateAndEvenWithoutBursts) {
  EXPECT_EQ(arrival_times({}, 4, 1), std::vector<double>(4, 0));
  ArrivalOptions even;
  even.request_rate = 4;
  even.burstiness = std::numeric_limits<double>::infinity();
  EXPECT_EQ(arrival_times(even, 3, 1), (std::vector<double>{0, 0.25, 0.5}));
}

TEST(ArrivalTimes, RampFromOneRateToTheOther) {
  ArrivalOptions ramp;
  ramp.burstiness = std::numeric_limits<double>::infinity();
  ramp.ramp = ArrivalOptions::Ramp::kLinear;
  ramp.ramp_start_rps = 1;
  ramp.ramp_end_rps = 3;
  const std::vector<double> linear = arrival_times(ramp, 3, 1);
  EXPECT_DOUBLE_EQ(linear[1], 1);
  EXPECT_DOUBLE_EQ(linear[2], 1.5);
  ramp.ramp = ArrivalOptions::Ramp::kExponential;
  ramp.ramp_end_rps = 4;
  const std::vector<double> exponential = arrival_times(ramp, 3, 1);
  EXPECT_DOUBLE_EQ(exponential[2], 1.5);  // 1 + 1/2
}

}  // namespace
}  // namespace anyslot::bench
