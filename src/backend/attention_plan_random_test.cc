#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <numeric>
#include <random>
#include <span>
#include <tuple>
#include <vector>

#include "backend/attention_plan.h"
#include "backend/test_step_builder.h"

// Random steps: the plan against a walk over every row and key.

namespace anyslot {
namespace {

std::vector<int32_t> all_rows(const StepPlan& step) {
  std::vector<int32_t> rows(step.rows.size());
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

/// Output row, block * kBlockSize + slot of the key, start: how often this pair counts.
using Pairs = std::map<std::tuple<int32_t, int64_t, int64_t>, int>;

bool sees(int64_t distance, int64_t token, int64_t window) {
  return token <= distance && (window == 0 || token > distance - window);
}

int64_t slot_of(const SpanView& span, int64_t token) {
  return int64_t{span.blocks[token / kBlockSize]} * kBlockSize + token % kBlockSize;
}

Pairs expected_pairs(const StepPlan& step, std::span<const int32_t> rows, int64_t window) {
  Pairs pairs;
  for (size_t k = 0; k < rows.size(); ++k) {
    const Row& row = step.rows[rows[k]];
    const SequencePlan& sequence = step.sequences[row.sequence];
    for (int32_t p = sequence.placement_begin; p < sequence.placement_end; ++p) {
      const Placement& placement = step.placements[p];
      for (int64_t i = placement.begin; i < placement.end; ++i) {
        if (!sees(row.position - placement.start, i, window)) continue;
        ++pairs[{static_cast<int32_t>(k), slot_of(placement.span, i), placement.start}];
      }
    }
  }
  return pairs;
}

Pairs planned_pairs(const StepPlan& step, const AttentionPlan& plan) {
  Pairs pairs;
  for (const WorkItem& item : plan.items) {
    for (int32_t r = item.range_begin; r < item.range_end; ++r) {
      const Range& range = plan.ranges[r];
      const Placement& placement = step.placements[range.placement];
      const int32_t row_end = range.row_end == 0 ? item.row_end : item.row_begin + range.row_end;
      for (int32_t k = item.row_begin + range.row_begin; k < row_end; ++k) {
        const int64_t start =
            range.starts < 0 ? placement.start : plan.starts[range.starts + k - item.row_begin];
        const int64_t distance = step.rows[plan.rows[k]].position - start;
        for (int64_t i = range.begin; i < range.end; ++i) {
          if (!sees(distance, i, plan.window)) continue;
          ++pairs[{plan.output_rows[k], slot_of(placement.span, i), start}];
        }
      }
    }
  }
  return pairs;
}

/// Every output row is written once: by a final item, or by a merge of all its partials in order.
void check_outputs(const AttentionPlan& plan, size_t num_rows) {
  std::vector<int> writers(num_rows);
  std::vector<int> slot_uses(plan.num_partials);
  std::vector<int32_t> row_of_slot(plan.num_partials, -1);
  for (const WorkItem& item : plan.items) {
    for (int32_t k = item.row_begin; k < item.row_end; ++k) {
      if (item.partial < 0) {
        ++writers[plan.output_rows[k]];
      } else {
        const int32_t slot = item.partial + k - item.row_begin;
        ASSERT_LT(slot, plan.num_partials);
        EXPECT_EQ(row_of_slot[slot], -1) << "two items write slot " << slot;
        row_of_slot[slot] = plan.output_rows[k];
      }
    }
  }
  for (const Merge& merge : plan.merges) {
    ++writers[merge.output_row];
    for (int32_t s = merge.slot_begin; s < merge.slot_end; ++s) {
      ++slot_uses[plan.slots[s]];
      EXPECT_EQ(row_of_slot[plan.slots[s]], merge.output_row);
      if (s > merge.slot_begin) {
        EXPECT_LT(plan.slots[s - 1], plan.slots[s]);
      }
    }
  }
  EXPECT_THAT(writers, testing::Each(1));
  EXPECT_THAT(slot_uses, testing::Each(1));
}

void check_ranges(const StepPlan& step, const AttentionPlan& plan, int tile_rows) {
  for (const WorkItem& item : plan.items) {
    EXPECT_GT(item.row_end, item.row_begin);
    EXPECT_LE(item.row_end - item.row_begin, tile_rows);
    for (int32_t r = item.range_begin; r < item.range_end; ++r) {
      const Range& range = plan.ranges[r];
      const Placement& placement = step.placements[range.placement];
      EXPECT_LT(range.begin, range.end);
      EXPECT_GE(range.begin, placement.begin);
      EXPECT_LE(range.end, placement.end);
      EXPECT_TRUE(range.begin == placement.begin || range.begin % kBlockSize == 0);
      if (placement.span.key_form == KeyForm::kRaw) {
        EXPECT_EQ(range.starts, -1);
      }
      if (range.row_end == 0) {
        EXPECT_EQ(range.row_begin, 0);
        EXPECT_TRUE(r == item.range_begin || plan.ranges[r - 1].row_end == 0);
        continue;
      }
      EXPECT_LT(range.row_begin, range.row_end);
      EXPECT_LE(range.row_end, item.row_end - item.row_begin);
      EXPECT_EQ(range.starts, -1);
    }
  }
}

void check_plan(const StepPlan& step, std::span<const int32_t> rows, const AttentionPlan& plan,
                const AttentionPlanOptions& options) {
  ASSERT_EQ(plan.rows.size(), plan.output_rows.size());
  for (size_t r = 0; r < plan.rows.size(); ++r) EXPECT_EQ(plan.rows[r], rows[plan.output_rows[r]]);
  check_ranges(step, plan, options.tile_rows);
  check_outputs(plan, rows.size());
  EXPECT_EQ(planned_pairs(step, plan), expected_pairs(step, rows, plan.window));
}

/// A step of a few sequences that draw documents from a common set, in every way the scheduler may.
class RandomStep {
 public:
  explicit RandomStep(uint32_t seed) : random_(seed) {
    for (int d = 0; d < 6; ++d) {
      const KeyForm form = one_in(4) ? KeyForm::kRaw : KeyForm::kTurned;
      documents_.push_back(builder_.span(pick(1, 90), form));
    }
    const int num_sequences = pick(1, 7);
    for (int s = 0; s < num_sequences; ++s) add_sequence();
    builder_.step.share_rows = !one_in(4);
  }

  const StepPlan& step() const { return builder_.step; }
  int pick(int low, int high) { return std::uniform_int_distribution(low, high)(random_); }
  bool one_in(int n) { return pick(1, n) == 1; }

 private:
  void add_sequence() {
    builder_.begin_sequence();
    int64_t position = one_in(2) ? 0 : pick(0, 40);
    const int num_documents = pick(0, 4);
    for (int d = 0; d < num_documents; ++d) {
      SpanView span = documents_[pick(0, static_cast<int>(documents_.size()) - 1)];
      if (one_in(3)) span = builder_.same_span(span);
      const int64_t end = one_in(5) ? pick(1, static_cast<int>(span.num_tokens)) : span.num_tokens;
      const int64_t begin = one_in(5) ? pick(0, static_cast<int>(end)) : 0;
      builder_.place(span, position, begin, end);
      position += span.num_tokens;
    }
    const int num_rows = one_in(2) ? 1 : pick(1, 40);
    const int64_t text = num_rows + (one_in(2) ? pick(0, 30) : 0);
    if (!one_in(4)) builder_.place(builder_.span(text), position);
    // Some rows stand in front of everything and see nothing.
    const int64_t first_row = one_in(6) ? -20 : position + text - num_rows;
    for (int r = 0; r < num_rows; ++r) builder_.row(first_row + r, one_in(3));
  }

  std::mt19937 random_;
  TestStepBuilder builder_;
  std::vector<SpanView> documents_;
};

TEST(AttentionPlan, CoversEveryVisiblePairOnce) {
  AttentionPlanner planner;
  AttentionPlan plan;
  for (uint32_t seed = 0; seed < 600; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomStep random(seed);
    const StepPlan& step = random.step();
    std::vector<int32_t> rows = all_rows(step);
    if (random.one_in(3)) std::erase_if(rows, [&](int32_t r) { return !step.rows[r].sample; });
    const int64_t window = random.one_in(3) ? random.pick(1, 60) : 0;
    const AttentionPlanOptions options{
        .tile_rows = random.pick(1, 16),
        .target_items = random.pick(1, 24),
        .min_item_tokens = random.pick(1, 64),
        .appended_tokens = random.one_in(2) ? random.pick(1, 90) : 0};
    planner.plan(step, rows, window, options, plan);
    check_plan(step, rows, plan, options);
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace anyslot
