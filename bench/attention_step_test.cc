#include "attention_step.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>

namespace anyslot::bench {
namespace {

constexpr int64_t kPool = 1000;

AttentionStep make_step(const AttentionCase& attention_case) {
  std::vector<BlockId> pool(kPool);
  std::iota(pool.begin(), pool.end(), 0);
  AttentionStep step(attention_case, pool);
  EXPECT_EQ(kPool - static_cast<int64_t>(pool.size()), blocks_of(attention_case));
  return step;
}

/// Three requests of 5 tokens over documents of 40, 40 and 20 tokens.
AttentionCase small_case(Method method, Sharing sharing) {
  return {method, sharing, 5, 100, 3, 40};
}

TEST(AttentionStep, EveryRequestSeesItsContextAndItsOwnTokens) {
  for (const Method method : {Method::kLazy, Method::kBlock, Method::kMepic}) {
    for (const Sharing sharing : {Sharing::kOwn, Sharing::kShared, Sharing::kUnshared}) {
      const AttentionStep step = make_step(small_case(method, sharing));
      const StepPlan& plan = step.plan();
      EXPECT_EQ(plan.rows.size(), 15U);
      EXPECT_EQ(plan.sequences.size(), 3U);
      EXPECT_EQ(count_visible_pairs(plan), 3 * (5 * 100 + 1 + 2 + 3 + 4 + 5));
      for (const Placement& placement : plan.placements) {
        const int64_t size = placement.span.num_tokens;
        EXPECT_EQ(static_cast<int64_t>(placement.span.blocks.size()), blocks_for(size));
        const bool is_text = size == 5;
        EXPECT_EQ(placement.span.key_form,
                  method == Method::kMepic && !is_text ? KeyForm::kRaw : KeyForm::kTurned);
        EXPECT_EQ(placement.span.first_angle,
                  method == Method::kBlock && !is_text ? placement.start : 0);
      }
    }
  }
}

TEST(AttentionStep, SharedDocumentsStandInAnotherOrderInEachRequest) {
  const AttentionStep step = make_step(small_case(Method::kLazy, Sharing::kShared));
  std::set<std::pair<BlockId, int64_t>> places;
  for (const Placement& placement : step.plan().placements) {
    places.insert({placement.span.blocks.front(), placement.start});
  }
  EXPECT_EQ(places.size(), 3U * 3 + 3) << "no document at one start twice";
}

TEST(AttentionStep, CountsWhatIsReadAndWhatIsDistinct) {
  const auto counts = [](Method method, Sharing sharing) {
    const AttentionStep step = make_step(small_case(method, sharing));
    return std::pair(step.plan().kv_tokens_read, count_distinct_tokens(step.plan()));
  };
  EXPECT_EQ(counts(Method::kLazy, Sharing::kOwn), std::pair(int64_t{315}, int64_t{315}));
  EXPECT_EQ(counts(Method::kLazy, Sharing::kShared), std::pair(int64_t{115}, int64_t{115}));
  EXPECT_EQ(counts(Method::kLazy, Sharing::kUnshared), std::pair(int64_t{315}, int64_t{115}));
  EXPECT_EQ(counts(Method::kBlock, Sharing::kShared), std::pair(int64_t{315}, int64_t{315}))
      << "copies are private";
  EXPECT_EQ(counts(Method::kMepic, Sharing::kShared), std::pair(int64_t{315}, int64_t{115}))
      << "raw keys are shared at equal starts only";
}

TEST(AttentionStep, WorksWithoutContext) {
  const AttentionStep step = make_step({Method::kLazy, Sharing::kOwn, 20, 0, 2, 40});
  EXPECT_EQ(count_visible_pairs(step.plan()), 2 * 210);
  EXPECT_EQ(count_distinct_tokens(step.plan()), 40);
}

TEST(Sharing, NamesAreRead) {
  for (const Sharing sharing : {Sharing::kOwn, Sharing::kShared, Sharing::kUnshared}) {
    EXPECT_EQ(parse_sharing(sharing_name(sharing)).value(), sharing);
  }
  EXPECT_EQ(parse_sharing("some").status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace anyslot::bench
