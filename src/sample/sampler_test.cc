#include "sample/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "sample/philox.h"
#include "sample/test_input.h"

namespace anyslot {
namespace {

using namespace testing_sample;

const std::vector<float> kLogits{1.0F, 3.0F, 2.0F, 3.0F, -1.0F};

/// Draws at the positions 0, 1, ... count - 1.
std::map<int32_t, int> draw(OwnedInput input, int count) {
  Sampler sampler;
  std::map<int32_t, int> counts;
  for (int position = 0; position < count; ++position) {
    ++counts[sampler.sample(input.view())];
    input.prompt.push_back(0);
  }
  return counts;
}

OwnedInput with_params(const SamplingParams& params) { return {kLogits, params, {}, {}, {}, 0}; }

// Probabilities by the book: sort, softmax, and cut, one rule after the other.
std::vector<double> reference_probabilities(const std::vector<float>& logits,
                                            const SamplingParams& params) {
  std::vector<size_t> order(logits.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return logits[a] > logits[b]; });
  std::vector<double> probabilities;
  for (const float logit : logits)
    probabilities.push_back(std::exp(double{logit} / double{params.temperature}));
  const double best = probabilities[order[0]];
  for (size_t place = 0; place < order.size(); ++place) {
    double& probability = probabilities[order[place]];
    const bool in_top_k = params.top_k == 0 || place < static_cast<size_t>(params.top_k);
    if (!in_top_k || probability < double{params.min_p} * best) probability = 0;
  }
  const double total = std::accumulate(probabilities.begin(), probabilities.end(), 0.0);
  double before = 0;
  double kept = 0;
  for (const size_t id : order) {
    const double probability = probabilities[id];
    if (before >= double{params.top_p} * total) probabilities[id] = 0;
    before += probability;
    kept += probabilities[id];
  }
  for (double& probability : probabilities) probability /= kept;
  return probabilities;
}

// Chi-square against the reference, at p = 0.0001 by Wilson and Hilferty's approximation.
void expect_distribution(const SamplingParams& params) {
  const std::vector<double> expected = reference_probabilities(kLogits, params);
  constexpr int kDraws = 20000;
  const auto counts = draw(with_params(params), kDraws);
  double chi_square = 0;
  int freedom = -1;
  for (size_t i = 0; i < expected.size(); ++i) {
    const auto it = counts.find(static_cast<int32_t>(i));
    const double seen = it == counts.end() ? 0 : it->second;
    if (expected[i] == 0) {
      ASSERT_EQ(seen, 0) << "token " << i << " is cut";
      continue;
    }
    ++freedom;
    chi_square += std::pow(seen - kDraws * expected[i], 2) / (kDraws * expected[i]);
  }
  if (freedom == 0) return;
  const double spread = 2.0 / (9.0 * freedom);
  EXPECT_LT(chi_square, freedom * std::pow(1 - spread + 3.72 * std::sqrt(spread), 3));
}

TEST(Sampler, GreedyTakesTheLowestOfEqualIds) {
  EXPECT_EQ(Sampler().sample(with_params({}).view()), 1);
}

TEST(Sampler, FollowsTheDistributionOfEveryCutAndOfTheirCombinations) {
  for (const float temperature : {0.5F, 2.0F}) {
    for (const int top_k : {0, 1, 2, 3, 9}) {
      for (const float top_p : {1.0F, 0.95F, 0.6F, 1e-6F}) {
        for (const float min_p : {0.0F, 0.2F, 0.61F, 1.0F}) {
          SCOPED_TRACE(testing::Message() << "temperature " << temperature << " top_k " << top_k
                                          << " top_p " << top_p << " min_p " << min_p);
          SamplingParams params;
          params.temperature = temperature;
          params.top_k = top_k;
          params.top_p = top_p;
          params.min_p = min_p;
          params.seed = 11;
          expect_distribution(params);
        }
      }
    }
  }
}

TEST(Sampler, ForbiddenTokensNeverCome) {
  SamplingParams params;
  params.temperature = 100;
  OwnedInput input = with_params(params);
  input.forbidden = {1, 4};
  const auto counts = draw(input, 3000);
  EXPECT_EQ(counts.size(), 3U);
  EXPECT_FALSE(counts.contains(1) || counts.contains(4));
  input.params.temperature = 0;
  EXPECT_EQ(Sampler().sample(input.view()), 3);
}

TEST(Sampler, BiasMovesTheGreedyChoice) {
  SamplingParams params;
  params.logit_bias = {{4, 100.0F}};
  EXPECT_EQ(Sampler().sample(with_params(params).view()), 4);
  params.logit_bias = {{1, -100.0F}, {3, -100.0F}};
  EXPECT_EQ(Sampler().sample(with_params(params).view()), 2);
}

TEST(Sampler, PlainGreedyIsThatWhichNothingChanges) {
  SamplingParams plain;
  plain.top_k = 3;  // cuts do not change the likeliest
  plain.top_p = 0.5F;
  EXPECT_TRUE(is_plain_greedy(plain, 0));
  const auto changed = [&plain](auto change) {
    SamplingParams params = plain;
    change(params);
    return !is_plain_greedy(params, 2);
  };
  EXPECT_TRUE(changed([](SamplingParams& p) { p.temperature = 0.1F; }));
  EXPECT_TRUE(changed([](SamplingParams& p) { p.logit_bias = {{4, 1.0F}}; }));
  EXPECT_TRUE(changed([](SamplingParams& p) { p.repetition_penalty = 1.1F; }));
  EXPECT_TRUE(changed([](SamplingParams& p) { p.presence_penalty = -0.5F; }));
  EXPECT_TRUE(changed([](SamplingParams& p) { p.frequency_penalty = 0.5F; }));
  EXPECT_TRUE(changed([](SamplingParams& p) { p.min_tokens = 3; }));
  EXPECT_FALSE(changed([](SamplingParams& p) { p.min_tokens = 2; }));
}

TEST(Sampler, DependsOnSeedChoiceAndPositionOnly) {
  SamplingParams params;
  params.temperature = 1.5F;
  params.seed = 5;
  Sampler used;
  OwnedInput input = with_params(params);
  std::vector<int32_t> forth;
  for (size_t position = 0; position < 50; ++position) {
    input.prompt.resize(position);
    forth.push_back(used.sample(input.view()));
  }
  for (size_t position = 50; position-- > 0;) {
    input.prompt.resize(position /
                        2);  // the position counts, not what is prompt and what is answer
    input.generated.resize(position - position / 2);
    EXPECT_EQ(used.sample(input.view()), forth[position]);
    EXPECT_EQ(Sampler().sample(input.view()), forth[position]);
  }
  OwnedInput other = with_params(params);
  other.params.seed = 6;
  EXPECT_NE(draw(with_params(params), 200), draw(other, 200));
  other = with_params(params);
  other.choice = 1;
  EXPECT_NE(draw(with_params(params), 200), draw(other, 200));
}

// Known answers of Philox4x32-10 published with the Random123 library: counter and key all zero
// give 6627e8d5 e169c58d ...
TEST(Philox, MatchesTheKnownAnswer) {
  const uint64_t bits = (uint64_t{0x6627e8d5U} << 32 | 0xe169c58dU) >> 11;
  EXPECT_EQ(uniform_number(0, 0, 0), static_cast<double>(bits) * 0x1p-53);
}

}  // namespace
}  // namespace anyslot
