#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/step_plan.h"

namespace anyslot {

/// Tokens [begin, end) of a placement's span. When the item's rows belong to one sequence they all see
/// the span at placements[placement].start, and `starts` is -1. Otherwise row r of the item sees it at
/// AttentionPlan::starts[starts + r].
struct Range {
  int32_t placement = 0;
  int64_t begin = 0;
  int64_t end = 0;
  int64_t starts = -1;
};

/// A tile of rows and an ordered run of ranges, done by one worker for one kv head at a time.
struct WorkItem {
  int32_t row_begin = 0;  // into AttentionPlan::rows; a row may stand in one item twice (a document given twice)
  int32_t row_end = 0;
  int32_t range_begin = 0;  // into AttentionPlan::ranges
  int32_t range_end = 0;
  int32_t partial = -1;  // slot of the first row's partial, further rows follow; -1: the output is final
};

/// The partials of one output row: slots[slot_begin, slot_end), merged in this order.
struct Merge {
  int32_t output_row = 0;
  int32_t slot_begin = 0;
  int32_t slot_end = 0;
};

/// How one step's attention is cut into work, shared by all layers of one window.
struct AttentionPlan {
  std::vector<int32_t> rows;         // index into StepPlan::rows
  std::vector<int32_t> output_rows;  // same length as rows: the row's index in Q and in the output
  std::vector<Range> ranges;
  std::vector<int64_t> starts;
  std::vector<WorkItem> items;  // the most expensive first
  std::vector<Merge> merges;
  std::vector<int32_t> slots;  // partial slots, referred to by merges
  int32_t num_partials = 0;    // float32 [num_partials, num_heads, head_dim + 2 (max, sum)]
  int64_t window = 0;          // 0: none
};

struct AttentionPlanOptions {
  int tile_rows = 16;            // rows of one item, at most
  int target_items = 8;          // cut long runs until there are about so many items
  int64_t min_item_tokens = 256; // but not into runs shorter than this
};

/// Cuts the attention of the given rows. `row_indices`: ascending indices into step.rows; position k
/// in it is the row's place in Q and in the output (the last layer runs only the sampled rows).
AttentionPlan plan_attention(const StepPlan& step, std::span<const int32_t> row_indices, int64_t window,
                             const AttentionPlanOptions& options);

}  // namespace anyslot
