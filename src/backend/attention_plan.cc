#include "backend/attention_plan.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

#include "backend/attention_runs.h"

namespace anyslot {

namespace {

/// A row of one of a run's members.
struct RunRow {
  int64_t position;
  int32_t row;  // index into StepPlan::rows
  int32_t output_row;
  int32_t member;  // counted from 0
};

/// Rows of the plan with all their ranges, before they are cut.
struct Tile {
  int32_t row_begin;
  int32_t row_end;
  int32_t range_begin;  // into tile_ranges_
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

/// Where a row stands: in which tile, and the how manieth there.
struct TilePlace {
  int32_t tile = -1;
  int32_t row = 0;
};

struct Extent {
  int64_t min;
  int64_t max;
};

/// Reading a token's K and V costs about as much as scoring two rows against it.
constexpr int64_t kReadCostInRows = 2;

int64_t cost_of(int64_t num_rows, int64_t tokens) { return (num_rows + kReadCostInRows) * tokens; }

int32_t size_of(const auto& vector) { return static_cast<int32_t>(vector.size()); }

}  // namespace

class AttentionPlanner::Impl {
 public:
  void make(const StepPlan& step, std::span<const int32_t> row_indices, int64_t window,
            const AttentionPlanOptions& options, AttentionPlan& plan);

 private:
  void clear(AttentionPlan& plan) const;
  void list_rows_of(const AttentionRun& run);
  int32_t private_rows() const { return std::max(2, options_.tile_rows / 2); }
  void tile_run(const AttentionRun& run);
  void add_tile(const AttentionRun& run, std::span<const RunRow> rows);
  void take_positions_of(std::span<const RunRow> rows);
  Range range_of(std::span<const int32_t> placements, std::span<const RunRow> rows);
  bool is_short_and_private(const AttentionRun& run) const;
  void append_short_runs();
  bool append_to_tiles(const AttentionRun& run);
  void append(const AttentionRun& run, std::span<const RunRow> rows, TilePlace first);
  void cut_tiles();
  void cut_tile(const Tile& tile, int64_t num_pieces);
  void add_item(const Tile& tile, int32_t range_begin);
  void add_items_of_blind_rows();
  void place_partials();
  void order_items();

  const StepPlan* step_ = nullptr;
  std::span<const int32_t> row_indices_;
  AttentionPlanOptions options_;
  AttentionPlan* plan_ = nullptr;
  const AttentionRuns* runs_ = nullptr;

  AttentionRunFinder finder_;
  std::vector<RunRow> run_rows_;
  Extent positions_{0, 0};              // of the rows of the tile at hand
  std::vector<VisibleTokens> covered_;  // by the tiles of the run at hand, of each of its spans
  std::vector<Tile> tiles_;
  std::vector<Range> tile_ranges_;
  std::vector<const AttentionRun*> short_runs_;
  std::vector<TilePlace> tile_places_;  // of each output row: its tile of most tokens
  std::vector<AppendedRange> appended_;
  std::vector<int32_t> places_;  // of each output row: how often it stands in an item
  std::vector<int32_t> slot_ends_;
  std::vector<std::pair<int64_t, int32_t>> order_;  // of each item: its negative cost and its index
  std::vector<WorkItem> unordered_items_;
};

void AttentionPlanner::Impl::make(const StepPlan& step, std::span<const int32_t> row_indices,
                                  int64_t window, const AttentionPlanOptions& options,
                                  AttentionPlan& plan) {
  step_ = &step;
  row_indices_ = row_indices;
  options_ = options;
  plan_ = &plan;
  clear(plan);
  plan.window = window;
  // Half a tile of rows uses a token well enough; sharing it would cost such a sequence a merge.
  runs_ = &finder_.find(step, row_indices, window, private_rows());
  tiles_.clear();
  tile_ranges_.clear();
  short_runs_.clear();
  for (const AttentionRun& run : runs_->runs) {
    if (is_short_and_private(run)) {
      short_runs_.push_back(&run);
    } else {
      tile_run(run);
    }
  }
  append_short_runs();
  cut_tiles();
  add_items_of_blind_rows();
  place_partials();
  order_items();
}

void AttentionPlanner::Impl::clear(AttentionPlan& plan) const {
  plan.rows.clear();
  plan.output_rows.clear();
  plan.ranges.clear();
  plan.starts.clear();
  plan.items.clear();
  plan.merges.clear();
  plan.slots.clear();
  plan.num_partials = 0;
  plan.kv_tokens_read = 0;
}

void AttentionPlanner::Impl::list_rows_of(const AttentionRun& run) {
  run_rows_.clear();
  for (int32_t m = 0; m < run.num_members(); ++m) {
    const SelectedRows& selected = runs_->selected[runs_->members[run.member_begin + m]];
    for (int32_t k = selected.begin; k < selected.end; ++k) {
      const int32_t row = row_indices_[k];
      run_rows_.push_back({step_->rows[row].position, row, k, m});
    }
  }
}

void AttentionPlanner::Impl::tile_run(const AttentionRun& run) {
  list_rows_of(run);
  covered_.assign(run.span_end - run.span_begin, {std::numeric_limits<int64_t>::max(), 0});
  const std::span<const RunRow> rows = run_rows_;
  const int64_t num_rows = size_of(run_rows_);
  const int64_t num_tiles = (num_rows + options_.tile_rows - 1) / options_.tile_rows;
  for (int64_t t = 0; t < num_tiles; ++t) {
    const int64_t begin = num_rows * t / num_tiles;
    const int64_t end = num_rows * (t + 1) / num_tiles;
    add_tile(run, rows.subspan(begin, end - begin));
  }
  for (const VisibleTokens& tokens : covered_) {
    if (tokens.begin < tokens.end) plan_->kv_tokens_read += tokens.end - tokens.begin;
  }
}

void AttentionPlanner::Impl::add_tile(const AttentionRun& run, std::span<const RunRow> rows) {
  Tile tile{size_of(plan_->rows), 0, size_of(tile_ranges_), 0, 0, -1, -1};
  take_positions_of(rows);
  for (int32_t s = run.span_begin; s < run.span_end; ++s) {
    const int32_t* placements = &runs_->placements[runs_->spans[s]];
    const Range range = range_of({placements, static_cast<size_t>(run.num_members())}, rows);
    if (range.begin >= range.end) continue;
    tile_ranges_.push_back(range);
    tile.tokens += range.end - range.begin;
    VisibleTokens& covered = covered_[s - run.span_begin];
    covered = {std::min(covered.begin, range.begin), std::max(covered.end, range.end)};
  }
  tile.range_end = size_of(tile_ranges_);
  if (tile.tokens == 0) return;
  for (const RunRow& row : rows) {
    plan_->rows.push_back(row.row);
    plan_->output_rows.push_back(row.output_row);
  }
  tile.row_end = size_of(plan_->rows);
  tiles_.push_back(tile);
}

void AttentionPlanner::Impl::take_positions_of(std::span<const RunRow> rows) {
  const auto [first, last] = std::ranges::minmax(rows, {}, &RunRow::position);
  positions_ = {first.position, last.position};
}

/// What the rows see of a span that each member reads through its placement; empty if nothing.
Range AttentionPlanner::Impl::range_of(std::span<const int32_t> placements,
                                       std::span<const RunRow> rows) {
  const Placement& placement = step_->placements[placements[0]];
  const auto start_of = [&](int32_t p) { return step_->placements[p].start; };
  const bool one_start =
      std::ranges::all_of(placements, [&](int32_t p) { return start_of(p) == placement.start; });
  Extent distances{positions_.min - placement.start, positions_.max - placement.start};
  if (!one_start) {
    distances = {std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()};
    for (const RunRow& row : rows) {
      const int64_t distance = row.position - start_of(placements[row.member]);
      distances = {std::min(distances.min, distance), std::max(distances.max, distance)};
    }
  }
  const VisibleTokens tokens =
      visible_tokens(placement, distances.min, distances.max, plan_->window);
  Range range{placements[0], tokens.begin, tokens.end, -1, 0, 0};
  if (one_start || tokens.begin >= tokens.end) return range;
  range.starts = size_of(plan_->starts);
  for (const RunRow& row : rows) plan_->starts.push_back(start_of(placements[row.member]));
  return range;
}

bool AttentionPlanner::Impl::is_short_and_private(const AttentionRun& run) const {
  if (run.num_members() != 1) return false;
  const SelectedRows& selected = runs_->selected[runs_->members[run.member_begin]];
  if (selected.size() >= private_rows()) return false;
  int64_t tokens = 0;
  for (int32_t s = run.span_begin; s < run.span_end; ++s) {
    const Placement& placement = step_->placements[runs_->placements[runs_->spans[s]]];
    tokens += placement.end - placement.begin;
  }
  return tokens <= options_.appended_tokens;
}

/// Those whose rows stand in no tile of another run get one of their own.
void AttentionPlanner::Impl::append_short_runs() {
  appended_.clear();
  if (short_runs_.empty()) return;
  tile_places_.assign(row_indices_.size(), {});
  for (int32_t t = 0; t < size_of(tiles_); ++t) {
    const Tile& tile = tiles_[t];
    for (int32_t r = tile.row_begin; r < tile.row_end; ++r) {
      TilePlace& place = tile_places_[plan_->output_rows[r]];
      if (place.tile >= 0 && tiles_[place.tile].tokens >= tile.tokens) continue;
      place = {t, r - tile.row_begin};
    }
  }
  for (const AttentionRun* run : short_runs_) {
    if (!append_to_tiles(*run)) tile_run(*run);
  }
}

/// False, and nothing is done, when some row has no tile.
bool AttentionPlanner::Impl::append_to_tiles(const AttentionRun& run) {
  list_rows_of(run);
  const std::span<const RunRow> rows = run_rows_;
  const auto place_of = [&](const RunRow& row) { return tile_places_[row.output_row]; };
  if (std::ranges::any_of(rows, [&](const RunRow& row) { return place_of(row).tile < 0; })) {
    return false;
  }
  for (size_t begin = 0, end = 0; begin < rows.size(); begin = end) {
    const TilePlace first = place_of(rows[begin]);
    for (end = begin + 1; end < rows.size(); ++end) {
      const TilePlace place = place_of(rows[end]);
      if (place.tile != first.tile || place.row != first.row + static_cast<int32_t>(end - begin)) {
        break;
      }
    }
    append(run, rows.subspan(begin, end - begin), first);
  }
  take_positions_of(rows);
  for (int32_t s = run.span_begin; s < run.span_end; ++s) {
    const Range range = range_of({&runs_->placements[runs_->spans[s]], 1}, rows);
    plan_->kv_tokens_read += std::max<int64_t>(0, range.end - range.begin);
  }
  return true;
}

/// The run's spans, for rows that stand side by side in a tile.
void AttentionPlanner::Impl::append(const AttentionRun& run, std::span<const RunRow> rows,
                                    TilePlace first) {
  take_positions_of(rows);
  Tile& tile = tiles_[first.tile];
  for (int32_t s = run.span_begin; s < run.span_end; ++s) {
    Range range = range_of({&runs_->placements[runs_->spans[s]], 1}, rows);
    if (range.begin >= range.end) continue;
    range.row_begin = first.row;
    range.row_end = first.row + size_of(rows);
    const int32_t index = size_of(appended_);
    (tile.appended_last < 0 ? tile.appended_begin : appended_[tile.appended_last].next) = index;
    tile.appended_last = index;
    appended_.push_back({range, -1});
  }
}

void AttentionPlanner::Impl::cut_tiles() {
  order_.clear();
  int64_t total_cost = 0;
  for (const Tile& tile : tiles_) total_cost += cost_of(tile.row_end - tile.row_begin, tile.tokens);
  const int64_t shortest = std::max<int64_t>(options_.min_item_tokens, kBlockSize);
  for (const Tile& tile : tiles_) {
    // As many pieces as the tile has fair shares: none is cut once there are many equal tiles.
    const int64_t shares =
        cost_of(tile.row_end - tile.row_begin, tile.tokens) * options_.target_items / total_cost;
    cut_tile(tile, std::max<int64_t>(1, std::min(shares, tile.tokens / shortest)));
  }
}

void AttentionPlanner::Impl::cut_tile(const Tile& tile, int64_t num_pieces) {
  const int64_t step = std::max<int64_t>(options_.cut_tokens, kBlockSize);
  int32_t r = tile.range_begin;
  int64_t begin = tile_ranges_[r].begin;
  int64_t consumed = 0;
  for (int64_t piece = 0; piece < num_pieces; ++piece) {
    const int64_t goal = tile.tokens * (piece + 1) / num_pieces;
    const int32_t range_begin = size_of(plan_->ranges);
    while (consumed < goal) {
      const Range& range = tile_ranges_[r];
      int64_t end = begin + goal - consumed;
      if (end < range.end) end = (end + step / 2) / step * step;
      end = std::min(end, range.end);
      if (end <= begin) break;  // less than half a step is left for this piece
      plan_->ranges.push_back({range.placement, begin, end, range.starts, 0, 0});
      consumed += end - begin;
      begin = end;
      if (end < range.end) break;
      if (++r < tile.range_end) begin = tile_ranges_[r].begin;
    }
    if (piece + 1 == num_pieces) {
      for (int32_t a = tile.appended_begin; a >= 0; a = appended_[a].next) {
        plan_->ranges.push_back(appended_[a].range);
      }
    }
    if (size_of(plan_->ranges) > range_begin) add_item(tile, range_begin);
  }
}

void AttentionPlanner::Impl::add_item(const Tile& tile, int32_t range_begin) {
  const WorkItem item{tile.row_begin, tile.row_end, range_begin, size_of(plan_->ranges), -1};
  int64_t tokens = 0;
  for (int32_t r = item.range_begin; r < item.range_end; ++r) {
    tokens += plan_->ranges[r].end - plan_->ranges[r].begin;
  }
  order_.emplace_back(-cost_of(item.row_end - item.row_begin, tokens), size_of(plan_->items));
  plan_->items.push_back(item);
}

/// Rows that see nothing: items without ranges.
void AttentionPlanner::Impl::add_items_of_blind_rows() {
  places_.assign(row_indices_.size(), 0);
  for (const WorkItem& item : plan_->items) {
    for (int32_t r = item.row_begin; r < item.row_end; ++r) ++places_[plan_->output_rows[r]];
  }
  Tile tile{size_of(plan_->rows), size_of(plan_->rows), 0, 0, 0, -1, -1};
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
void AttentionPlanner::Impl::place_partials() {
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

void AttentionPlanner::Impl::order_items() {
  std::ranges::sort(order_);
  unordered_items_.swap(plan_->items);
  plan_->items.clear();
  for (const auto& [cost, item] : order_) plan_->items.push_back(unordered_items_[item]);
}

AttentionPlanner::AttentionPlanner() : impl_(std::make_unique<Impl>()) {}
AttentionPlanner::~AttentionPlanner() = default;
AttentionPlanner::AttentionPlanner(AttentionPlanner&&) noexcept = default;
AttentionPlanner& AttentionPlanner::operator=(AttentionPlanner&&) noexcept = default;

void AttentionPlanner::plan(const StepPlan& step, std::span<const int32_t> row_indices,
                            int64_t window, const AttentionPlanOptions& options,
                            AttentionPlan& plan) {
  impl_->make(step, row_indices, window, options, plan);
}

AttentionPlan plan_attention(const StepPlan& step, std::span<const int32_t> row_indices,
                             int64_t window, const AttentionPlanOptions& options) {
  AttentionPlan plan;
  AttentionPlanner().plan(step, row_indices, window, options, plan);
  return plan;
}

}  // namespace anyslot
