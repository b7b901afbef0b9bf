#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/exp_kernel.h"
#include "backend/cpu/kernels.h"

namespace anyslot::cpu {
namespace {  // NOLINT: each instruction set has its own copy, compiled with its own flags

/// Attention of the rows of one work item over runs of blocks: keys are taken kTileKeys at a time,
/// with a running maximum and sum per row, and the weighted values are rescaled when the maximum
/// grows.
template <typename Dot>
class AttentionKernel {
 public:
  static void reset(const AttentionTile& tile);
  static void attend(const AttentionTile& tile, const KeyRun& run);

 private:
  using S = typename Dot::Simd;
  using Vec = typename S::Vec;
  using Operand = typename Dot::Operand;
  static constexpr int kLanes = S::kLanes;
  static constexpr int kVecBytes =
      kLanes * Dot::kPack * static_cast<int>(sizeof(typename Dot::Element));
  static constexpr int kTileVecs = kTileKeys / kLanes;

  /// The keys of one tile, for all rows.
  struct Tile {
    const std::byte* keys[kTileBlocks];
    const std::byte* values[kTileBlocks];
    const std::byte* next_keys[kTileBlocks];  // of the tile after it, for prefetching
    const std::byte* next_values[kTileBlocks];
    int num_blocks;
    int first_token;
  };
  /// What the rows of one register tile need between scores and values.
  struct Scratch {
    alignas(64) float scores[Dot::kRows * kTileKeys];
    alignas(64) Operand weights[Dot::kRows * kTileKeys];
    alignas(64) float rescale[kMaxLanes];
  };

  static Tile tile_at(const KeyRun& run, int first_block);
  static void expand_bounds(const AttentionTile& tile, const KeyRun& run);
  template <int kCount>
  static void dispatch(const AttentionTile& tile, const Tile& keys, int first, int count);
  template <int kM>
  static void attend_rows(const AttentionTile& tile, const Tile& keys, int first);
  template <int kM>
  static void score(const Operand* queries, int head_dim, const Tile& keys, float* scores);
  static void mask(const AttentionTile& tile, const Tile& keys, int row, float* scores);
  template <int kM>
  static void weigh(const AttentionTile& tile, int first, Scratch& scratch);
  template <int kM>
  static void add_values(const Scratch& scratch, const Tile& keys, int head_dim, float* outputs);
  template <int kM, int kN>
  static void add_values_of_columns(const Scratch& scratch, const Tile& keys, int head_dim,
                                    int column, float* outputs);
  template <int kM, int kN>
  static void multiply(Vec (&sums)[kM][kN], const Operand* a, int64_t a_stride,
                       const std::byte* const (&b)[kN], const std::byte* const (&next)[kN],
                       int64_t step_bytes, int num_steps);
};

template <typename Dot>
void AttentionKernel<Dot>::reset(const AttentionTile& tile) {
  const int64_t rows = int64_t{tile.num_rows} * tile.group;
  for (int64_t m = 0; m < rows; ++m) tile.maxima[m] = -__builtin_inff();
  for (int64_t i = 0; i < rows * kMaxLanes; ++i) tile.sums[i] = 0;
  for (int64_t i = 0; i < rows * tile.head_dim; ++i) tile.outputs[i] = 0;
}

template <typename Dot>
void AttentionKernel<Dot>::attend(const AttentionTile& tile, const KeyRun& run) {
  expand_bounds(tile, run);
  const int rows = tile.num_rows * tile.group;
  const int num_groups = (rows + Dot::kRows - 1) / Dot::kRows;
  for (int block = 0; block < run.num_blocks; block += kTileBlocks) {
    const Tile keys = tile_at(run, block);
    for (int g = 0; g < num_groups; ++g) {  // of nearly equal size
      const int first = rows * g / num_groups;
      dispatch<Dot::kRows>(tile, keys, first, rows * (g + 1) / num_groups - first);
    }
  }
}

/// A tile at the end repeats its last block; no row sees the copies.
template <typename Dot>
typename AttentionKernel<Dot>::Tile AttentionKernel<Dot>::tile_at(const KeyRun& run,
                                                                  int first_block) {
  Tile tile;
  const int left = run.num_blocks - first_block;
  const int num_listed = run.num_blocks + run.num_ahead;
  tile.num_blocks = left < kTileBlocks ? left : kTileBlocks;
  tile.first_token = first_block * kBlockTokens;
  for (int b = 0; b < kTileBlocks; ++b) {
    const int block = first_block + (b < tile.num_blocks ? b : tile.num_blocks - 1);
    const int after = first_block + tile.num_blocks + b;
    const int next = after < num_listed ? after : num_listed - 1;
    tile.keys[b] = run.keys[block];
    tile.values[b] = run.values[block];
    tile.next_keys[b] = run.keys[next];
    tile.next_values[b] = run.values[next];
  }
  return tile;
}

template <typename Dot>
void AttentionKernel<Dot>::expand_bounds(const AttentionTile& tile, const KeyRun& run) {
  const int num_tokens = run.num_blocks * kBlockTokens;
  for (int r = 0; r < tile.num_rows; ++r) {
    const int begin = run.row_begins[r] > 0 ? run.row_begins[r] : 0;
    const int end = run.row_ends[r] < num_tokens ? run.row_ends[r] : num_tokens;
    for (int m = r * tile.group; m < (r + 1) * tile.group; ++m) {
      tile.begins[m] = begin;
      tile.ends[m] = end;
    }
  }
}

template <typename Dot>
template <int kCount>
void AttentionKernel<Dot>::dispatch(const AttentionTile& tile, const Tile& keys, int first,
                                    int count) {
  if (count == kCount) {
    attend_rows<kCount>(tile, keys, first);
  } else if constexpr (kCount > 1) {
    dispatch<kCount - 1>(tile, keys, first, count);
  }
}

template <typename Dot>
template <int kM>
void AttentionKernel<Dot>::attend_rows(const AttentionTile& tile, const Tile& keys, int first) {
  const int tile_end = keys.first_token + kTileKeys;
  bool none = true;
  bool all = true;
  for (int m = first; m < first + kM; ++m) {
    none = none && (tile.begins[m] >= tile_end || tile.ends[m] <= keys.first_token);
    all = all && tile.begins[m] <= keys.first_token && tile.ends[m] >= tile_end;
  }
  if (none) return;
  Scratch scratch;
  const auto* queries = static_cast<const Operand*>(tile.queries) + int64_t{first} * tile.head_dim;
  score<kM>(queries, tile.head_dim, keys, scratch.scores);
  if (!all) {
    for (int m = 0; m < kM; ++m) mask(tile, keys, first + m, scratch.scores + m * kTileKeys);
  }
  weigh<kM>(tile, first, scratch);
  add_values<kM>(scratch, keys, tile.head_dim, tile.outputs + int64_t{first} * tile.head_dim);
}

/// scores = queries keys^T. queries: [kM, head_dim]; scores: [kM, kTileKeys].
template <typename Dot>
template <int kM>
void AttentionKernel<Dot>::score(const Operand* queries, int head_dim, const Tile& keys,
                                 float* scores) {
  constexpr int kN = Dot::kCols;
  constexpr int kBlockVecs = kBlockTokens / kLanes;
  for (int v = 0; v < kTileVecs; v += kN) {
    const std::byte* b[kN];
    const std::byte* next[kN];
    for (int n = 0; n < kN; ++n) {
      const int64_t offset = (v + n) % kBlockVecs * kVecBytes;
      b[n] = keys.keys[(v + n) / kBlockVecs] + offset;
      next[n] = keys.next_keys[(v + n) / kBlockVecs] + offset;
    }
    Vec sums[kM][kN];
    for (int m = 0; m < kM; ++m) {
      for (int n = 0; n < kN; ++n) sums[m][n] = S::zero();
    }
    multiply<kM, kN>(sums, queries, head_dim, b, next, kBlockVecs * kVecBytes,
                     head_dim / Dot::kPack);
    for (int m = 0; m < kM; ++m) {
      for (int n = 0; n < kN; ++n) S::store(scores + m * kTileKeys + (v + n) * kLanes, sums[m][n]);
    }
  }
}

template <typename Dot>
void AttentionKernel<Dot>::mask(const AttentionTile& tile, const Tile& keys, int row,
                                float* scores) {
  const int begin = tile.begins[row] - keys.first_token;
  const int end = tile.ends[row] - keys.first_token;
  for (int i = 0; i < kTileKeys; i += kLanes) {
    S::store(scores + i, S::keep_lanes(S::load(scores + i), begin - i, end - i));
  }
}

/// Turns scores into weights relative to the new maximum, and brings maximum and sum up to date.
template <typename Dot>
template <int kM>
void AttentionKernel<Dot>::weigh(const AttentionTile& tile, int first, Scratch& scratch) {
  static_assert(kM <= kLanes);
  alignas(64) float shifts[kLanes] = {};
  alignas(64) float growths[kLanes] = {};
  for (int m = 0; m < kM; ++m) {
    const float* scores = scratch.scores + m * kTileKeys;
    Vec top = S::load(scores);
    for (int i = kLanes; i < kTileKeys; i += kLanes) top = S::max(top, S::load(scores + i));
    const float before = tile.maxima[first + m];
    const float largest = S::reduce_max(top);
    const float now = largest > before ? largest : before;
    tile.maxima[first + m] = now;
    shifts[m] = now == -__builtin_inff() ? 0.0F : now;  // a row that has seen nothing yet
    growths[m] = before - shifts[m];
  }
  S::store(scratch.rescale, exp_of<S>(S::load(growths)));
  for (int m = 0; m < kM; ++m) {
    const float* scores = scratch.scores + m * kTileKeys;
    const Vec shift = S::set(shifts[m]);
    float* sums = tile.sums + int64_t{first + m} * kMaxLanes;
    Vec sum = S::mul(S::load(sums), S::set(scratch.rescale[m]));
    for (int i = 0; i < kTileKeys; i += kLanes) {
      const Vec weight = exp_of<S>(S::sub(S::load(scores + i), shift));
      sum = S::add(sum, weight);
      Dot::store_operands(scratch.weights + m * kTileKeys + i, weight);
    }
    S::store(sums, sum);
  }
}

/// outputs = outputs * rescale + weights values. outputs: [kM, head_dim].
template <typename Dot>
template <int kM>
void AttentionKernel<Dot>::add_values(const Scratch& scratch, const Tile& keys, int head_dim,
                                      float* outputs) {
  const int num_columns = head_dim / kLanes;
  int column = 0;
  for (; column + Dot::kCols <= num_columns; column += Dot::kCols) {
    add_values_of_columns<kM, Dot::kCols>(scratch, keys, head_dim, column, outputs);
  }
  if constexpr (Dot::kCols > 2) {  // head_dim is a multiple of 16
    for (; column + 2 <= num_columns; column += 2) {
      add_values_of_columns<kM, 2>(scratch, keys, head_dim, column, outputs);
    }
    if (column < num_columns) {
      add_values_of_columns<kM, 1>(scratch, keys, head_dim, column, outputs);
    }
  }
}

template <typename Dot>
template <int kM, int kN>
void AttentionKernel<Dot>::add_values_of_columns(const Scratch& scratch, const Tile& keys,
                                                 int head_dim, int column, float* outputs) {
  Vec sums[kM][kN];
  for (int m = 0; m < kM; ++m) {
    const Vec rescale = S::set(scratch.rescale[m]);
    for (int n = 0; n < kN; ++n) {
      sums[m][n] = S::mul(S::load(outputs + m * head_dim + (column + n) * kLanes), rescale);
    }
  }
  const int64_t step_bytes = int64_t{head_dim} / kLanes * kVecBytes;
  for (int block = 0; block < keys.num_blocks; ++block) {
    const std::byte* b[kN];
    const std::byte* next[kN];
    for (int n = 0; n < kN; ++n) {
      b[n] = keys.values[block] + (column + n) * kVecBytes;
      next[n] = keys.next_values[block] + (column + n) * kVecBytes;
    }
    multiply<kM, kN>(sums, scratch.weights + block * kBlockTokens, kTileKeys, b, next, step_bytes,
                     kBlockTokens / Dot::kPack);
  }
  for (int m = 0; m < kM; ++m) {
    for (int n = 0; n < kN; ++n) {
      S::store(outputs + m * head_dim + (column + n) * kLanes, sums[m][n]);
    }
  }
}

/// sums += a b over num_steps steps. a: [kM, num_steps * kPack]; b: kN columns of vectors; next:
/// what stands in the next tile where b stands in this one, fetched into the second-level cache
/// meanwhile, because blocks lie anywhere in memory and the hardware's prefetcher sees the end of
/// each too late.
template <typename Dot>
template <int kM, int kN>
[[gnu::always_inline]] inline void AttentionKernel<Dot>::multiply(
    Vec (&sums)[kM][kN], const Operand* a, int64_t a_stride, const std::byte* const (&b)[kN],
    const std::byte* const (&next)[kN], int64_t step_bytes, int num_steps) {
  for (int step = 0; step < num_steps; ++step) {
    typename Dot::Packed packed[kN];
    for (int n = 0; n < kN; ++n) {
      packed[n] = Dot::load(b[n] + step * step_bytes);
      __builtin_prefetch(next[n] + step * step_bytes, 0, 2);
    }
    for (int m = 0; m < kM; ++m) {
      for (int n = 0; n < kN; ++n) {
        Dot::add_product(sums[m][n], packed[n], a + m * a_stride + step * Dot::kPack);
      }
    }
  }
}

}  // namespace
}  // namespace anyslot::cpu
