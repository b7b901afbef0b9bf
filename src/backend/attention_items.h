#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "backend/attention_plan.h"

namespace anyslot {

/// Rows of the plan with all their ranges, before they are cut.
struct RowTile {
  int32_t row_begin;
  int32_t row_end;
  int32_t range_begin;  // into TiledRows::ranges
  int32_t range_end;
  int64_t tokens;
  int32_t appended_begin = -1;  // the first of its appended ranges
  int32_t appended_last = -1;
};

/// A range for some rows of a tile, at the end of its last piece.
struct AppendedRange {
  Range range;
  int32_t next;  // of the same tile; -1: none
};

/// All the rows of a plan that see something.
struct TiledRows {
  std::span<const RowTile> tiles;
  std::span<const Range> ranges;
  std::span<const AppendedRange> appended;
};

int32_t size_of(const auto& list) { return static_cast<int32_t>(list.size()); }

/// Cuts tiles of rows into a plan's work items, of about equal cost, and says where the items'
/// partial results stand and merge. Keeps its memory from plan to plan.
class ItemCutter {
 public:
  /// `row_indices`: those of all the plan's rows. `plan` has the rows of the tiles already; rows in
  /// no tile, which see nothing, get items without ranges.
  void cut(const TiledRows& tiled, std::span<const int32_t> row_indices,
           const AttentionPlanOptions& options, AttentionPlan& plan);

 private:
  void cut_tiles();
  void cut_tile(const RowTile& tile, int64_t num_pieces);
  void add_item(const RowTile& tile, int32_t range_begin);
  void add_items_of_blind_rows();
  void place_partials();
  void order_items();

  TiledRows tiled_;
  std::span<const int32_t> row_indices_;
  AttentionPlanOptions options_;
  AttentionPlan* plan_ = nullptr;

  std::vector<int32_t> places_;  // of each output row: how often it stands in an item
  std::vector<int32_t> slot_ends_;
  std::vector<std::pair<int64_t, int32_t>> order_;  // of each item: its negative cost and its index
  std::vector<WorkItem> unordered_items_;
};

}  // namespace anyslot
