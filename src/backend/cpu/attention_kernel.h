#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/attention_stages.h"
#include "backend/cpu/kernels.h"

namespace anyslot::cpu {
namespace {  // NOLINT: each instruction set has its own copy, compiled with its own flags

/// Attention of the rows of one work item over runs of blocks: keys are taken a tile at a time,
/// rows as many as fill the registers.
template <typename Dot>
class AttentionKernel {
 public:
  static void reset(const AttentionTile& tile);
  static void attend(const AttentionTile* tiles, int num_tiles, const KeyRun& run);

 private:
  using Stages = AttentionStages<Dot>;

  template <int kM, bool kFetchAll>
  static void run_job(const RowJob& job);
  static void run_jobs(RowJob& job);
  static constexpr int kNoCommonEnd = -1;
  static constexpr float kNoStarts[Dot::kRows] = {};
  static int expand_bounds(const AttentionTile& tile, const KeyRun& run);
  static KeyTile tile_at(const KeyRun& run, int first_block, int num_blocks, int first_listed);
  static void fetch_pages(const KeyTile& keys);
  static void share_fetching(int group, int num_groups, RowJob& job);
  /// Says whether any of the job's rows sees any of its keys; sets what the job hides.
  static bool sees_any(RowJob& job);
};

template <typename Dot>
void AttentionKernel<Dot>::reset(const AttentionTile& tile) {
  const int64_t rows = int64_t{tile.num_rows} * tile.group;
  for (int64_t m = 0; m < rows; ++m) tile.starts[m] = 0;
  for (int64_t m = 0; m < rows; ++m) tile.limits[m] = Stages::kHidden;
  for (int64_t i = 0; i < rows * kMaxLanes; ++i) tile.sums[i] = 0;
  for (int64_t i = 0; i < rows * tile.head_dim; ++i) tile.outputs[i] = 0;
}

/// Calls function(constant) for the constant in [1, kMost] that equals count.
template <int kMost, typename Function>
[[gnu::always_inline]] inline void with_constant(int count, const Function& function) {
  if (count == kMost) {
    function(Constant<kMost>());
  } else if constexpr (kMost > 1) {
    with_constant<kMost - 1>(count, function);
  }
}

template <typename Dot>
template <int kM, bool kFetchAll>
void AttentionKernel<Dot>::run_job(const RowJob& job) {
  typename Stages::Scratch scratch;
  Stages::template score<kM, kFetchAll>(job, scratch);
  Stages::template weigh<kM>(job, scratch);
  Stages::template add_values<kM, kFetchAll>(job, scratch);
}

template <typename Dot>
void AttentionKernel<Dot>::attend(const AttentionTile* tiles, int num_tiles, const KeyRun& run) {
  const int common_end = expand_bounds(tiles[0], run);
  int listed = 0;
  for (int block = 0; block < run.num_blocks; block += run.tile_blocks) {
    const int left = run.num_blocks - block;
    const int num_blocks = left < run.tile_blocks ? left : run.tile_blocks;
    for (int t = 0; t < num_tiles; ++t, listed += num_blocks) {
      const KeyTile at_hand = tile_at(run, block, num_blocks, listed);
      fetch_pages(at_hand);
      RowJob job;
      job.rows = &tiles[t];
      job.begins = tiles[0].begins;
      job.ends = tiles[0].ends;
      job.keys = &at_hand;
      job.hidden_from = common_end - at_hand.first_token;
      job.see_differently = common_end == kNoCommonEnd;
      if (common_end != kNoCommonEnd && job.hidden_from <= 0) continue;
      run_jobs(job);
    }
  }
}

/// Takes all rows of the job's tile through its keys, in groups of nearly equal size.
template <typename Dot>
void AttentionKernel<Dot>::run_jobs(RowJob& job) {
  const bool all_see_same = !job.see_differently;
  const int rows = job.rows->num_rows * job.rows->group;
  const int num_groups = (rows + Dot::kRows - 1) / Dot::kRows;
  const int smaller = rows / num_groups;
  const int num_larger = rows % num_groups;
  job.first = 0;
  for (int g = 0; g < num_groups; ++g, job.first += job.count) {
    job.count = smaller + (g < num_larger ? 1 : 0);
    if (!all_see_same && !sees_any(job)) continue;
    job.first_scores = job.rows->score_cap > 0 ? kNoStarts : job.rows->starts + job.first;
    share_fetching(g, num_groups, job);
    with_constant<Dot::kRows>(job.count, [&](auto m) {
      if (job.fetch_all) {
        run_job<m, true>(job);
      } else {
        run_job<m, false>(job);
      }
    });
  }
}

template <typename Dot>
KeyTile AttentionKernel<Dot>::tile_at(const KeyRun& run, int first_block, int num_blocks,
                                      int first_listed) {
  KeyTile tile;
  tile.num_blocks = num_blocks;
  tile.first_token = first_block * kBlockTokens;
  for (int b = 0; b < run.tile_blocks; ++b) {
    const int block = first_listed + (b < num_blocks ? b : num_blocks - 1);
    const int after = first_listed + num_blocks + b;
    const int next = after < run.num_listed ? after : run.num_listed - 1;
    tile.keys[b] = run.keys[block];
    tile.values[b] = run.values[block];
    tile.next_keys[b] = run.keys[next];
    tile.next_values[b] = run.values[next];
  }
  return tile;
}

/// Finds the next tile's pages all at once: one after the other each would take as long as some
/// hundred instructions.
template <typename Dot>
void AttentionKernel<Dot>::fetch_pages(const KeyTile& keys) {
  for (int b = 0; b < keys.num_blocks; ++b) {
    __builtin_prefetch(keys.next_keys[b], 0, 2);
    __builtin_prefetch(keys.next_values[b], 0, 2);
  }
}

/// Four columns, dealt out evenly to the first four groups.
template <typename Dot>
void AttentionKernel<Dot>::share_fetching(int group, int num_groups, RowJob& job) {
  job.fetch_all = num_groups == 1;
  job.fetch_none = group >= 4;
  job.fetched_columns[0] = group;
  job.fetched_columns[1] = group;
  if (num_groups == 2) {
    job.fetched_columns[0] = 2 * group;
    job.fetched_columns[1] = 2 * group + 1;
  } else if (num_groups == 3 && group == 2) {
    job.fetched_columns[1] = 3;
  }
}

/// Returns where what all rows see ends, if it begins with the run and ends at one token. Scores
/// that are capped are hidden behind the cap, as if each row saw a part of its own.
template <typename Dot>
int AttentionKernel<Dot>::expand_bounds(const AttentionTile& tile, const KeyRun& run) {
  const int num_tokens = run.num_blocks * kBlockTokens;
  bool see_same = !(tile.score_cap > 0);
  for (int r = 0; r < tile.num_rows; ++r) {
    const int begin = run.row_begins[r] > 0 ? run.row_begins[r] : 0;
    const int end = run.row_ends[r] < num_tokens ? run.row_ends[r] : num_tokens;
    for (int m = r * tile.group; m < (r + 1) * tile.group; ++m) {
      tile.begins[m] = begin;
      tile.ends[m] = end;
    }
    see_same = see_same && begin == 0 && end == tile.ends[0];
  }
  return see_same ? tile.ends[0] : kNoCommonEnd;
}

template <typename Dot>
bool AttentionKernel<Dot>::sees_any(RowJob& job) {
  const int tile_begin = job.keys->first_token;
  const int tile_end = tile_begin + job.keys->num_blocks * kBlockTokens;
  int latest_begin = tile_begin;
  int first_end = tile_end;
  bool any = false;
  bool same_end = true;
  for (int m = job.first; m < job.first + job.count; ++m) {
    any = any || (job.begins[m] < tile_end && job.ends[m] > tile_begin);
    latest_begin = job.begins[m] > latest_begin ? job.begins[m] : latest_begin;
    first_end = job.ends[m] < first_end ? job.ends[m] : first_end;
    same_end = same_end && job.ends[m] == job.ends[job.first];
  }
  const bool see_same = !(job.rows->score_cap > 0) && latest_begin == tile_begin &&
                        (same_end || first_end == tile_end);
  job.see_differently = !see_same;
  job.hidden_from = see_same ? first_end - tile_begin : kTileKeys;
  return any;
}

}  // namespace
}  // namespace anyslot::cpu
