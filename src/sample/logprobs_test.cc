#include "sample/logprobs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "sample/test_input.h"

namespace anyslot {
namespace {

using namespace testing_sample;

TEST(TokenLogprobs, AreTheLogarithmsOfTheSoftmax) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int trial = 0; trial < 100; ++trial) {
    const size_t vocab = 1 + random() % 50;
    const std::vector<float> logits = random_logits(random, vocab);
    const auto token = static_cast<int32_t>(random() % vocab);
    const int num_top = static_cast<int>(random() % 21);
    const TokenLogprobs result = token_logprobs(logits, token, num_top);

    double sum = 0;
    for (const float logit : logits) sum += std::exp(double{logit});
    std::vector<double> expected;
    for (const float logit : logits) expected.push_back(std::log(std::exp(double{logit}) / sum));
    EXPECT_EQ(result.chosen.token_id, token);
    EXPECT_NEAR(result.chosen.logprob, expected[static_cast<size_t>(token)], 1e-5);
    ASSERT_EQ(result.top.size(), std::min(vocab, static_cast<size_t>(num_top)));
    for (const TokenLogprob& top : result.top) {
      EXPECT_NEAR(top.logprob, expected[static_cast<size_t>(top.token_id)], 1e-5);
    }
    std::sort(expected.rbegin(), expected.rend());
    for (size_t i = 0; i < result.top.size(); ++i) {
      EXPECT_NEAR(result.top[i].logprob, expected[i], 1e-5) << "place " << i;
    }
  }
}

TEST(TokenLogprobs, LargeLogitsDoNotOverflow) {
  const TokenLogprobs result = token_logprobs(std::vector<float>{3e4F, 3e4F, -3e4F}, 2, 3);
  EXPECT_FLOAT_EQ(result.chosen.logprob, -6e4F - std::log(2.0F));
  EXPECT_EQ(result.top[0].token_id, 0) << "the lowest id of equals";
  EXPECT_FLOAT_EQ(result.top[0].logprob, -std::log(2.0F));
  EXPECT_EQ(result.top[1].token_id, 1);
}

}  // namespace
}  // namespace anyslot
