#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "backend/cpu/attention_runner.h"

// What one thread holds while it attends; of attention_runner.cc alone.

namespace anyslot::cpu {

/// kv heads of a task, at most.
inline constexpr int kTaskHeads = 4;
/// Blocks that are listed at a time, each once for every head of the task.
inline constexpr int kRunBlocks = 64;
/// Blocks of raw keys that are turned at a time: they should still be in the second-level cache
/// when they are scored.
inline constexpr int kRawRunBlocks = 4;

/// Hands out consecutive, aligned pieces of one memory; without memory it only counts.
class Carver {
 public:
  explicit Carver(std::byte* data) : data_(data) {}

  template <typename T>
  T* take(int64_t count) {
    std::byte* piece = data_ == nullptr ? nullptr : data_ + bytes_;
    bytes_ += (static_cast<size_t>(count) * sizeof(T) + 63) / 64 * 64;
    return reinterpret_cast<T*>(piece);
  }
  size_t bytes() const { return bytes_; }

 private:
  std::byte* data_;
  size_t bytes_ = 0;
};

inline int group_of(const AttentionSpec& spec) { return spec.num_heads / spec.num_kv_heads; }

/// Blocks [begin, end) of a span.
struct AttentionRunner::BlockRun {
  int64_t begin;
  int64_t end;

  /// Calls visit(first, count) for the blocks that one head is taken through at a time.
  template <typename Visit>
  void for_tiles(int tile_blocks, const Visit& visit) const {
    for (int64_t first = begin; first < end; first += tile_blocks) {
      visit(first, static_cast<int>(std::min<int64_t>(tile_blocks, end - first)));
    }
  }
};

struct AttentionRunner::Worker {
  HostMemory memory;
  AttentionTile tiles[kTaskHeads];  // of the task's kv heads, all rows of the item
  int32_t item_row = 0;             // the item's first row in the plan
  // The rows at hand, to which ranges apply: all of the item's or some.
  AttentionTile at_hand[kTaskHeads];
  int num_rows = 0;
  int32_t first_row = 0;    // counted from the item's
  float* cosine = nullptr;  // [num_pairs]: of the position at hand
  float* sine = nullptr;
  float* query_cosine = nullptr;  // [num_pairs]: what the heads of the row at hand are turned by
  float* query_sine = nullptr;
  float* row_cosine = nullptr;  // [rows, num_pairs]: of the rows' own positions
  float* row_sine = nullptr;
  float* block_cosine = nullptr;  // [num_pairs, 16]: of the tokens of the block at hand
  float* block_sine = nullptr;
  std::byte* turned_keys = nullptr;  // kRawRunBlocks blocks of raw keys of each head, turned
  bool has_raw_query = false;        // the queries are turned by the rows' own positions
  std::vector<int64_t> begins;       // per row: tokens of the range at hand that it sees
  std::vector<int64_t> ends;
  std::vector<int32_t> run_begins;  // the same, from the first token of a run of blocks
  std::vector<int32_t> run_ends;
  // A run of blocks as it is attended to: tile_blocks blocks of one head, the same blocks of the
  // next head, and so on; behind the run a few blocks that come next.
  int tile_blocks = 0;
  const std::byte* keys[(kRunBlocks + kTileBlocks) * kTaskHeads];
  const std::byte* values[(kRunBlocks + kTileBlocks) * kTaskHeads];
  int num_listed = 0;
  std::vector<const float*> partials;

  /// Lays out memory for `rows` query rows.
  size_t lay_out(std::byte* data, const AttentionCall& call, int rows) {
    const int group = group_of(call.spec);
    const int head_dim = call.spec.head_dim;
    const int64_t heads = int64_t{rows} * group;
    Carver carver(data);
    for (int h = 0; h < std::min(kTaskHeads, call.spec.num_kv_heads); ++h) {
      AttentionTile& tile = tiles[h];
      tile.group = group;
      tile.head_dim = head_dim;
      tile.score_cap = call.spec.score_cap;
      tile.queries = carver.take<float>(heads * head_dim);
      tile.outputs = carver.take<float>(heads * head_dim);
      tile.starts = carver.take<float>(heads);
      tile.limits = carver.take<float>(heads);
      tile.sums = carver.take<float>(heads * kMaxLanes);
      tile.begins = carver.take<int32_t>(heads);
      tile.ends = carver.take<int32_t>(heads);
    }
    const int pairs = call.spec.rope->num_pairs();
    cosine = carver.take<float>(pairs);
    sine = carver.take<float>(pairs);
    query_cosine = carver.take<float>(pairs);
    query_sine = carver.take<float>(pairs);
    row_cosine = carver.take<float>(int64_t{rows} * pairs);
    row_sine = carver.take<float>(int64_t{rows} * pairs);
    block_cosine = carver.take<float>(int64_t{pairs} * kBlockSize);
    block_sine = carver.take<float>(int64_t{pairs} * kBlockSize);
    turned_keys = carver.take<std::byte>(
        static_cast<int64_t>(call.storage.head_bytes() * kRawRunBlocks * kTaskHeads));
    return carver.bytes();
  }

  /// Makes rows [begin, end) of the item those at hand.
  void take_rows(int32_t begin, int32_t end, int num_heads) {
    first_row = begin;
    num_rows = end - begin;
    has_raw_query = false;
    for (int h = 0; h < num_heads; ++h) {
      const AttentionTile& all = tiles[h];
      const int64_t first = int64_t{begin} * all.group;
      at_hand[h] = all;
      at_hand[h].num_rows = num_rows;
      at_hand[h].queries = static_cast<float*>(all.queries) + first * all.head_dim;
      at_hand[h].outputs = all.outputs + first * all.head_dim;
      at_hand[h].starts = all.starts + first;
      at_hand[h].limits = all.limits + first;
      at_hand[h].sums = all.sums + first * kMaxLanes;
    }
  }
  int32_t plan_row(int r) const { return item_row + first_row + r; }
};

}  // namespace anyslot::cpu
