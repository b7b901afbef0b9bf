#include "method_comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

namespace anyslot::cli {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(MethodComparison, MeasuresAgainstTheLargestLogit) {
  EXPECT_DOUBLE_EQ(relative_difference({1, -4, 2}, {1, -4, 3}), 0.25);
  EXPECT_DOUBLE_EQ(relative_difference({0, 0}, {0, 0}), 0);
}

TEST(MethodComparison, NeverAcceptsWhatCannotBeCompared) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(relative_difference({1, nan}, {1, nan}), infinity);
  EXPECT_EQ(relative_difference({1}, {1, 2}), infinity);
  EXPECT_EQ(relative_difference({}, {}), infinity);
}

/// Compares two answers of methods lazy and block with equal prompt logits. Where they part, the
/// logits are those given; `prefix` is what they are asked for.
PairDifference difference_of(const std::vector<int32_t>& a, const std::vector<int32_t>& b,
                             const std::vector<float>& logits_of_a,
                             const std::vector<float>& logits_of_b,
                             std::vector<int32_t>* prefix = nullptr) {
  Completion of_a;
  of_a.prompt_logits = {1, 2};
  of_a.token_ids = a;
  Completion of_b = of_a;
  of_b.token_ids = b;
  PairDifference pair{Method::kLazy, Method::kBlock, 0, {}, {}, {}};
  const auto next_logits = [&](Method method, std::span<const int32_t> answer) {
    if (prefix != nullptr) prefix->assign(answer.begin(), answer.end());
    return Expected(method == Method::kLazy ? logits_of_a : logits_of_b);
  };
  const Status status = add_difference(of_a, of_b, next_logits, "case 7", pair);
  EXPECT_TRUE(status.ok()) << status.message();
  return pair;
}

TEST(AddDifference, ExcusesANearTieAtTheFirstTokenThatDiffers) {
  std::vector<int32_t> prefix;
  const PairDifference pair = difference_of({5, 9, 1, 4}, {5, 9, 2, 8}, {-9, 20.001F, 20, 1},
                                            {-9, 20, 20.0015F, 1}, &prefix);
  EXPECT_THAT(prefix, ElementsAre(5, 9));
  EXPECT_TRUE(pair.agrees()) << pair.unlike_answers;
  EXPECT_THAT(pair.near_ties, ElementsAre("case 7, token 3"));
  EXPECT_NEAR(pair.largest, 0.0015 / 20, 1e-6) << "the logits there count";
}

TEST(AddDifference, DoesNotExcuseAClearChoice) {
  const PairDifference pair = difference_of({1}, {2}, {0, 20, 20.003F, 1}, {0, 20, 20.003F, 1});
  EXPECT_TRUE(pair.within_rounding());
  EXPECT_FALSE(pair.agrees());
  EXPECT_EQ(pair.unlike_answers, "case 7");
  EXPECT_THAT(pair.near_ties, IsEmpty());
}

TEST(AddDifference, DoesNotExcuseATokenBesideTheTie) {
  EXPECT_FALSE(difference_of({0}, {2}, {5, 20, 20}, {5, 20, 20}).agrees());
  EXPECT_FALSE(difference_of({1}, {0}, {5, 20, 20}, {5, 20, 20}).agrees());
}

TEST(AddDifference, ComparesTheLogitsWhereAnswersPart) {
  EXPECT_FALSE(difference_of({1}, {2}, {0, 20, 10}, {0, 20, 20}).within_rounding());
}

TEST(AddDifference, DoesNotExcuseAnAnswerThatEndsSooner) {
  EXPECT_FALSE(difference_of({1, 2}, {1}, {}, {}).agrees());
  EXPECT_FALSE(difference_of({1}, {1, 2}, {}, {}).agrees());
}

TEST(AddDifference, AsksForNothingWhenAnswersAreEqual) {
  EXPECT_TRUE(difference_of({1, 2}, {1, 2}, {}, {}).agrees());
}

// The logits that decide on a near tie are those that the answer was taken from.
TEST(NextLogits, AreThoseOfTheGreedyAnswer) {
  EngineConfig config;
  config.model_path = ANYSLOT_MODEL_DIR;
  config.dtype = ComputeType::kFloat32;
  config.kv_cache_bytes = int64_t{64} << 20;
  Expected<Engine> engine = Engine::open(config);
  ASSERT_TRUE(engine.ok()) << engine.status().message();
  Expected<std::vector<Segment>> segments = engine->render_rag(
      {{"Lornaburg", "Lornaburg is a city in Japan. The river Masa flows through it.", ""},
       {"Fenholm", "Fenholm is a city in Norway on the river Lorzi.", ""}},
      "Which river flows through Lornaburg?");
  ASSERT_TRUE(segments.ok()) << segments.status().message();
  const NextLogits next_logits = next_logits_of(*engine, *segments);
  for (const Method method : {Method::kLazy, Method::kFull}) {
    Request request;
    request.segments = *segments;
    request.method = method;
    Expected<Completion> completion = complete(*engine, request);
    ASSERT_TRUE(completion.ok()) << completion.status().message();
    const std::vector<int32_t>& answer = completion->token_ids;
    ASSERT_GT(answer.size(), 1);
    for (size_t n = 0; n < answer.size(); ++n) {
      const Expected<std::vector<float>> logits = next_logits(method, std::span(answer).first(n));
      ASSERT_TRUE(logits.ok()) << logits.status().message();
      const auto best = std::max_element(logits->begin(), logits->end()) - logits->begin();
      EXPECT_EQ(best, answer[n]) << method_name(method) << ", token " << n;
    }
  }
}

}  // namespace
}  // namespace anyslot::cli
