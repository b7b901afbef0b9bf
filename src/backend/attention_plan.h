#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "plan/step_plan.h"

namespace anyslot {

/// Tokens [begin, end) of a placement's span, never empty. No row of the item sees a key of the
/// placement outside of it; inside, each row still masks by its own distance. `begin` is the
/// placement's own begin or a multiple of kBlockSize.
///
/// Row r of the item sees the span at AttentionPlan::starts[starts + r], or, when `starts` is -1,
/// all rows see it at the start of the placement. Raw keys are shared at equal starts only: always
/// -1.
struct Range {
  int32_t placement = 0;
  int64_t begin = 0;
  int64_t end = 0;
  int64_t starts = -1;
  /// Which of the item's rows see the span at all, counted from its first one; row_end 0: all of
  /// them. Ranges for some rows stand behind those for all, and have no starts of their own.
  int32_t row_begin = 0;
  int32_t row_end = 0;
};

/// A tile of rows and an ordered run of ranges, done by one worker for one kv head at a time.
/// Without ranges (rows that see nothing) its output is 0.
struct WorkItem {
  int32_t row_begin = 0;    // into AttentionPlan::rows; a row stands in an item twice when its
  int32_t row_end = 0;      // sequence was given a document twice
  int32_t range_begin = 0;  // into AttentionPlan::ranges
  int32_t range_end = 0;
  int32_t partial = -1;  // slot of the first row's partial, the others follow; -1: output is final
};

/// The partials of one output row: AttentionPlan::slots[slot_begin, slot_end), merged in this
/// order.
struct Merge {
  int32_t output_row = 0;
  int32_t slot_begin = 0;
  int32_t slot_end = 0;
};

/// How one step's attention is cut into work, shared by all layers of one window. Every output row
/// is written by exactly one final item or by exactly one merge.
struct AttentionPlan {
  std::vector<int32_t> rows;         // index into StepPlan::rows
  std::vector<int32_t> output_rows;  // same length as rows: the row's index in Q and in the output
  std::vector<Range> ranges;
  std::vector<int64_t> starts;
  std::vector<WorkItem> items;  // the most expensive first
  std::vector<Merge> merges;    // in ascending order of output_row
  std::vector<int32_t> slots;   // partial slots, referred to by merges; ascending within each
  int32_t num_partials = 0;     // float32 [num_partials, num_heads, head_dim + 2]
  int64_t window = 0;           // 0: none
  /// KV tokens that the runs cover: tokens that several tiles of one run read count once.
  int64_t kv_tokens_read = 0;
};

struct AttentionPlanOptions {
  int tile_rows = 16;             // rows of one item, at most
  int target_items = 8;           // runs longer than a fair share of so many items are cut
  int64_t min_item_tokens = 256;  // but not into items shorter than this
  int64_t cut_tokens = 16;        // and at multiples of this of a span's tokens, whole blocks
  /// What a sequence reads alone is appended to an item that has its rows already, up to so many
  /// tokens, which saves an item and a merge. 0: never.
  int64_t appended_tokens = 0;
};

/// Cuts steps into attention plans; keeps its scratch memory from one step to the next.
class AttentionPlanner {
 public:
  AttentionPlanner();
  ~AttentionPlanner();
  AttentionPlanner(AttentionPlanner&&) noexcept;
  AttentionPlanner& operator=(AttentionPlanner&&) noexcept;

  /// Replaces `plan` by the plan of the given rows. `row_indices`: ascending indices into
  /// step.rows; position k in it is the row's place in Q and in the output (the last layer runs
  /// only the sampled rows). Keys are visible up to `window` tokens back; 0: all of them.
  void plan(const StepPlan& step, std::span<const int32_t> row_indices, int64_t window,
            const AttentionPlanOptions& options, AttentionPlan& plan);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// A plan made by a planner of its own.
AttentionPlan plan_attention(const StepPlan& step, std::span<const int32_t> row_indices,
                             int64_t window, const AttentionPlanOptions& options);

}  // namespace anyslot
