#include "sample/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "sample/philox.h"

namespace anyslot {
namespace {

const std::vector<float> kLogits{1.0F, 3.0F, 2.0F, 3.0F, -1.0F};

std::map<int32_t, int> draw(const SamplingParams& params, int count) {
  Sampler sampler;
  std::map<int32_t, int> counts;
  for (int position = 0; position < count; ++position) {
    ++counts[sampler.sample(kLogits, params, position)];
  }
  return counts;
}

TEST(Sampler, GreedyTakesTheLowestOfEqualIds) { EXPECT_EQ(Sampler().sample(kLogits, {}, 7), 1); }

TEST(Sampler, FollowsTheSoftmax) {
  SamplingParams params;
  params.temperature = 2.0F;
  params.seed = 11;
  const int kDraws = 40000;
  const auto counts = draw(params, kDraws);
  double total = 0;
  for (const float logit : kLogits) total += std::exp(logit / 2.0);
  double chi_square = 0;
  for (size_t i = 0; i < kLogits.size(); ++i) {
    const double expected = kDraws * std::exp(kLogits[i] / 2.0) / total;
    const auto it = counts.find(static_cast<int32_t>(i));
    const double seen = it == counts.end() ? 0 : it->second;
    chi_square += (seen - expected) * (seen - expected) / expected;
  }
  EXPECT_LT(chi_square, 18.5);  // 4 degrees of freedom, p = 0.001
}

TEST(Sampler, TopKAndTopPCutTheTail) {
  SamplingParams params;
  params.temperature = 1.0F;
  params.top_k = 2;
  for (const auto& [token, count] : draw(params, 2000)) EXPECT_TRUE(token == 1 || token == 3);
  params.top_k = 0;
  params.top_p = 0.78F;  // the two best hold 0.793 of the probability
  for (const auto& [token, count] : draw(params, 2000)) EXPECT_TRUE(token == 1 || token == 3);
  params.top_p = 1e-6F;
  EXPECT_EQ(draw(params, 100).size(), 1U);
}

TEST(Sampler, DependsOnSeedAndPositionOnly) {
  SamplingParams params;
  params.temperature = 1.5F;
  params.seed = 5;
  Sampler fresh;
  Sampler used;
  for (int position = 0; position < 50; ++position) used.sample(kLogits, params, position);
  for (int position = 49; position >= 0; --position) {
    EXPECT_EQ(used.sample(kLogits, params, position), fresh.sample(kLogits, params, position));
  }
  SamplingParams other = params;
  other.seed = 6;
  EXPECT_NE(draw(params, 200), draw(other, 200));
}

// Known answers of Philox4x32-10 published with the Random123 library: counter and key all zero
// give 6627e8d5 e169c58d ...
TEST(Philox, MatchesTheKnownAnswer) {
  const uint64_t bits = (uint64_t{0x6627e8d5U} << 32 | 0xe169c58dU) >> 11;
  EXPECT_EQ(uniform_number(0, 0, 0), static_cast<double>(bits) * 0x1p-53);
}

}  // namespace
}  // namespace anyslot
