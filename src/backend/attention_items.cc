#include "backend/attention_items.h"

#include <algorithm>
#include <cstddef>

namespace anyslot {

namespace {

/// Reading a token's K and V costs about as much as scoring two rows against it.
constexpr int64_t kReadCostInRows = 2;

int64_t cost_of(int64_t num_rows, int64_t tokens) { return (num_rows + kReadCostInRows) * tokens; }

}  // namespace

void ItemCutter::cut(const TiledRows& tiled, std::span<const int32_t> row_indices,
                     const AttentionPlanOptions& options, AttentionPlan& plan) {
  tiled_ = tiled;
  row_indices_ = row_indices;
  options_ = options;
  plan_ = &plan;
  cut_tiles();
  add_items_of_blind_rows();
  place_partials();
  order_items();
}

void ItemCutter::cut_tiles() {
  order_.clear();
  int64_t total_cost = 0;
  for (const RowTile& tile : tiled_.tiles)
    total_cost += cost_of(tile.row_end - tile.row_begin, tile.tokens);
  const int64_t shortest = std::max<int64_t>(options_.min_item_tokens, kBlockSize);
  for (const RowTile& tile : tiled_.tiles) {
    // As many pieces as the tile has fair shares: none is cut once there are many equal tiles.
    const int64_t shares =
        cost_of(tile.row_end - tile.row_begin, tile.tokens) * options_.target_items / total_cost;
    cut_tile(tile, std::max<int64_t>(1, std::min(shares, tile.tokens / shortest)));
  }
}

void ItemCutter::cut_tile(const RowTile& tile, int64_t num_pieces) {
  const int64_t step = std::max<int64_t>(options_.cut_tokens, kBlockSize);
  int32_t r = tile.range_begin;
  int64_t begin = tiled_.ranges[r].begin;
  int64_t consumed = 0;
  for (int64_t piece = 0; piece < num_pieces; ++piece) {
    const int64_t goal = tile.tokens * (piece + 1) / num_pieces;
    const int32_t range_begin = size_of(plan_->ranges);
    while (consumed < goal) {
      const Range& range = tiled_.ranges[r];
      int64_t end = begin + goal - consumed;
      if (end < range.end) end = (end + step / 2) / step * step;
      end = std::min(end, range.end);
      if (end <= begin) break;  // less than half a step is left for this piece
      plan_->ranges.push_back({range.placement, begin, end, range.starts, 0, 0});
      consumed += end - begin;
      begin = end;
      if (end < range.end) break;
      if (++r < tile.range_end) begin = tiled_.ranges[r].begin;
    }
    if (piece + 1 == num_pieces) {
      for (int32_t a = tile.appended_begin; a >= 0; a = tiled_.appended[a].next) {
        plan_->ranges.push_back(tiled_.appended[a].range);
      }
    }
    if (size_of(plan_->ranges) > range_begin) add_item(tile, range_begin);
  }
}

void ItemCutter::add_item(const RowTile& tile, int32_t range_begin) {
  const WorkItem item{tile.row_begin, tile.row_end, range_begin, size_of(plan_->ranges), -1};
  int64_t tokens = 0;
  for (int32_t r = item.range_begin; r < item.range_end; ++r) {
    tokens += plan_->ranges[r].end - plan_->ranges[r].begin;
  }
  order_.emplace_back(-cost_of(item.row_end - item.row_begin, tokens), size_of(plan_->items));
  plan_->items.push_back(item);
}

/// Rows that see nothing: items without ranges.
void ItemCutter::add_items_of_blind_rows() {
  places_.assign(row_indices_.size(), 0);
  for (const WorkItem& item : plan_->items) {
    for (int32_t r = item.row_begin; r < item.row_end; ++r) ++places_[plan_->output_rows[r]];
  }
  RowTile tile{size_of(plan_->rows), size_of(plan_->rows), 0, 0, 0, -1, -1};
  for (int32_t k = 0; k < size_of(places_); ++k) {
    if (places_[k] != 0) continue;
    plan_->rows.push_back(row_indices_[k]);
    plan_->output_rows.push_back(k);
    if (++tile.row_end - tile.row_begin == options_.tile_rows) {
      add_item(tile, size_of(plan_->ranges));
      tile.row_begin = tile.row_end;
    }
  }
  if (tile.row_begin < tile.row_end) add_item(tile, size_of(plan_->ranges));
}

/// An item is final when it is the only place of all its rows. Slots follow the order in which the
/// runs were found, not the order of cost, so that a row's partials merge in the order of its run.
void ItemCutter::place_partials() {
  AttentionPlan& plan = *plan_;
  const auto is_final = [&](const WorkItem& item) {
    for (int32_t r = item.row_begin; r < item.row_end; ++r) {
      if (places_[plan.output_rows[r]] > 1) return false;
    }
    return true;
  };
  slot_ends_.assign(places_.size(), 0);
  for (WorkItem& item : plan.items) {
    if (is_final(item)) continue;
    item.partial = plan.num_partials;
    plan.num_partials += item.row_end - item.row_begin;
    for (int32_t r = item.row_begin; r < item.row_end; ++r) ++slot_ends_[plan.output_rows[r]];
  }
  int32_t begin = 0;
  for (int32_t k = 0; k < size_of(slot_ends_); ++k) {
    const int32_t count = slot_ends_[k];
    if (count > 0) plan.merges.push_back({k, begin, begin + count});
    slot_ends_[k] = begin;
    begin += count;
  }
  plan.slots.resize(begin);
  for (const WorkItem& item : plan.items) {
    if (item.partial < 0) continue;
    for (int32_t r = item.row_begin; r < item.row_end; ++r) {
      plan.slots[slot_ends_[plan.output_rows[r]]++] = item.partial + r - item.row_begin;
    }
  }
}

void ItemCutter::order_items() {
  std::ranges::sort(order_);
  unordered_items_.swap(plan_->items);
  plan_->items.clear();
  for (const auto& [cost, item] : order_) plan_->items.push_back(unordered_items_[item]);
}

}  // namespace anyslot
