#include "sample/logit_rules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "sample/test_input.h"

namespace anyslot {
namespace {

using namespace testing_sample;

// The definitions, token by token: bias, stop mask, Hugging Face's repetition penalty over prompt
// and answer, OpenAI's presence and frequency penalties over the answer.
std::vector<double> reference_logits(const OwnedInput& input) {
  std::vector<double> result;
  for (size_t i = 0; i < input.logits.size(); ++i) {
    const auto id = static_cast<int32_t>(i);
    const auto in_prompt = std::count(input.prompt.begin(), input.prompt.end(), id);
    const auto in_answer = std::count(input.generated.begin(), input.generated.end(), id);
    double logit = input.logits[i];
    const auto bias = input.params.logit_bias.find(id);
    if (bias != input.params.logit_bias.end()) logit += bias->second;
    if (std::count(input.forbidden.begin(), input.forbidden.end(), id) > 0) logit = -HUGE_VAL;
    if (in_prompt + in_answer > 0) {
      logit = logit > 0 ? logit / input.params.repetition_penalty
                        : logit * input.params.repetition_penalty;
    }
    if (in_answer > 0) logit -= input.params.presence_penalty;
    logit -= input.params.frequency_penalty * static_cast<double>(in_answer);
    result.push_back(logit);
  }
  return result;
}

void expect_reference(LogitRules& rules, const OwnedInput& input) {
  const std::span<const float> actual = rules.apply(input.view());
  const std::vector<double> expected = reference_logits(input);
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    if (std::isinf(expected[i])) {
      ASSERT_EQ(actual[i], expected[i]) << "token " << i;
    } else {
      ASSERT_NEAR(actual[i], expected[i], 1e-4) << "token " << i;
    }
  }
}

TEST(LogitRules, FollowTheirDefinitionsAlsoTogether) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  LogitRules rules;  // one for all, as in the engine: nothing may leak from one call to the next
  for (int trial = 0; trial < 300; ++trial) {
    const size_t vocab = 5 + random() % 60;
    OwnedInput input;
    input.logits = random_logits(random, vocab);
    input.prompt = random_ids(random, random() % 30, vocab);
    input.generated = random_ids(random, random() % 30, vocab);
    if (random() % 2 == 0) input.params.repetition_penalty = 1.7F;
    if (random() % 2 == 0) input.params.presence_penalty = -1.5F;
    if (random() % 2 == 0) input.params.frequency_penalty = 0.4F;
    if (random() % 2 == 0) input.forbidden = random_ids(random, 3, vocab);
    if (random() % 2 == 0) {
      for (const int32_t id : random_ids(random, 4, vocab)) input.params.logit_bias[id] = -20.5F;
    }
    expect_reference(rules, input);
  }
}

TEST(LogitRules, PromptTokensAreRepetitionsButNotPresent) {
  LogitRules rules;
  OwnedInput input{{2.0F, -2.0F, 2.0F}, {}, {0, 1}, {}, {}, 0};
  input.params.repetition_penalty = 2.0F;
  input.params.presence_penalty = 1.0F;
  input.params.frequency_penalty = 1.0F;
  const std::span<const float> logits = rules.apply(input.view());
  EXPECT_EQ(std::vector<float>(logits.begin(), logits.end()),
            (std::vector<float>{1.0F, -4.0F, 2.0F}));
}

TEST(LogitRules, WithoutRulesTheLogitsAreNotCopied) {
  LogitRules rules;
  const OwnedInput input{{1.0F, 2.0F}, {}, {0}, {1}, {}, 0};
  EXPECT_EQ(rules.apply(input.view()).data(), input.logits.data());
}

// A model's configuration may name end tokens that its vocabulary does not have.
TEST(LogitRules, ForbiddenIdsPastTheVocabularyAreIgnored) {
  LogitRules rules;
  const OwnedInput input{{1.0F, 2.0F}, {}, {}, {}, {-1, 2, 1000000}, 0};
  const std::span<const float> logits = rules.apply(input.view());
  EXPECT_EQ(std::vector<float>(logits.begin(), logits.end()), input.logits);
}

}  // namespace
}  // namespace anyslot
