#include "backend/attention_plan.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

#include "backend/attention_items.h"
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

/// Where a row stands: in which tile, and the how manieth there.
struct TilePlace {
  int32_t tile = -1;
  int32_t row = 0;
};

struct Extent {
  int64_t min;
  int64_t max;
};

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

  const StepPlan* step_ = nullptr;
  std::span<const int32_t> row_indices_;
  AttentionPlanOptions options_;
  AttentionPlan* plan_ = nullptr;
  const AttentionRuns* runs_ = nullptr;

  AttentionRunFinder finder_;
  std::vector<RunRow> run_rows_;
  Extent positions_{0, 0};              // of the rows of the tile at hand
  std::vector<VisibleTokens> covered_;  // by the tiles of the run at hand, of each of its spans
  std::vector<RowTile> tiles_;
  std::vector<Range> tile_ranges_;
  std::vector<const AttentionRun*> short_runs_;
  std::vector<TilePlace> tile_places_;  // of each output row: its tile of most tokens
  std::vector<AppendedRange> appended_;
  ItemCutter cutter_;
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
  cutter_.cut({tiles_, tile_ranges_, appended_}, row_indices, options, plan);
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
  RowTile tile{size_of(plan_->rows), 0, size_of(tile_ranges_), 0, 0, -1, -1};
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
    const RowTile& tile = tiles_[t];
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
  RowTile& tile = tiles_[first.tile];
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
