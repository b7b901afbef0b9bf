#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "backend/cpu/exp_kernel.h"
#include "backend/cpu/kernels.h"

namespace anyslot::cpu {
namespace {  // NOLINT: each instruction set has its own copy, compiled with its own flags

/// A number as a type. (What the standard library's is made of could be shared with code that other
/// processors run.)
template <int kValue>
struct Constant {
  constexpr operator int() const { return kValue; }  // NOLINT: used like a number
};

/// Calls function(0), ..., function(kCount - 1) with constants: arrays that these index can live in
/// registers.
template <int kCount, typename Function>
[[gnu::always_inline]] inline void unrolled(const Function& function) {
  [&]<int... kIndex>(std::integer_sequence<int, kIndex...>) __attribute__((always_inline)) {
    (function(Constant<kIndex>()), ...);
  }
  (std::make_integer_sequence<int, kCount>());
}

/// The keys that are scored at once, kTileBlocks blocks of one head or fewer, and those that come
/// after them, to be fetched meanwhile.
struct KeyTile {
  const std::byte* keys[kTileBlocks];
  const std::byte* values[kTileBlocks];
  const std::byte* next_keys[kTileBlocks];
  const std::byte* next_values[kTileBlocks];
  int num_blocks;
  int first_token;
};

/// Scores are taken times log2(e), so that weights are powers of 2.
constexpr float kLog2E = 1.44269504088896340736F;

/// Rows [first, first + count) of a tile of rows, which fill the registers, against a tile of keys.
struct RowJob {
  const AttentionTile* rows;
  const int32_t* begins;  // of all the rows
  const int32_t* ends;
  const KeyTile* keys;
  int first;
  int count;
  const float* first_scores;  // [count]: what scores begin with: the starts, or 0 before a cap
  int hidden_from;            // all rows see the keys up to here, counted from the tile's first,
  bool see_differently;       // or each sees a part of its own
  /// What they fetch of the next tile of keys: all, or the columns, counted within a product's
  /// kCols, that stand where the ones at hand do in this one.
  bool fetch_all;
  bool fetch_none;
  int fetched_columns[2];
};

/// The three stages of a RowJob. The weights of a row are relative to its start, minus a recent
/// maximum of its scores. The start stays until a score exceeds it by kHeadroom, so that maxima of
/// single rows, and rescaling what the row has summed up, are rarely needed: the sums have room for
/// weights above 1.
template <typename Dot>
class AttentionStages {
 public:
  /// What a job keeps between its stages.
  struct Scratch {
    alignas(64) float scores[Dot::kRows * kTileKeys];
    alignas(64) typename Dot::Operand weights[Dot::kRows * kTileKeys];
  };
  /// The score of a key that a row doesn't see: finite, so that it has an exponential without
  /// special cases.
  static constexpr float kHidden = -1e30F;

  /// scores = queries keys^T + first_scores, [kM, kTileKeys]; kHidden where no row sees the key.
  template <int kM, bool kFetchAll>
  static void score(const RowJob& job, Scratch& scratch);
  /// Moves starts if need be, turns scores into weights, and adds these to the sums.
  template <int kM>
  static void weigh(const RowJob& job, Scratch& scratch);
  /// outputs += weights values.
  template <int kM, bool kFetchAll>
  static void add_values(const RowJob& job, const Scratch& scratch);

 private:
  using S = typename Dot::Simd;
  using Vec = typename S::Vec;
  using Operand = typename Dot::Operand;
  static constexpr int kLanes = S::kLanes;
  static constexpr int kVecBytes =
      kLanes * Dot::kPack * static_cast<int>(sizeof(typename Dot::Element));
  static constexpr float kHeadroom = 8.0F;

  template <int kM, int kN, bool kFetchAll>
  static void score_columns(const RowJob& job, int column, float* scores);
  /// The job's keys, rounded up to what is weighed at a time; the others are hidden.
  static int scored_keys(const RowJob& job) {
    constexpr int kAtATime = 2 * kLanes;
    return (job.keys->num_blocks * kBlockTokens + kAtATime - 1) / kAtATime * kAtATime;
  }
  static void cap_scores(const RowJob& job, float* scores);
  template <int kM>
  static void hide(const RowJob& job, float* scores);
  template <int kM>
  static bool exceeds_limits(const RowJob& job, const float* scores);
  static void move_starts(const RowJob& job, float* scores);
  template <int kM, int kN, bool kFetchAll>
  static void add_columns(const RowJob& job, const Operand* weights, int column);
  template <int kM, int kN, bool kFetchAll>
  static void multiply(Vec (&sums)[kM][kN], const Operand* a, int64_t a_stride,
                       const std::byte* const (&b)[kN], const std::byte* const (&next)[kN],
                       const RowJob& job, int64_t step_bytes, int num_steps);
};

template <typename Dot>
template <int kM, bool kFetchAll>
[[gnu::always_inline]] inline void AttentionStages<Dot>::score(const RowJob& job,
                                                               Scratch& scratch) {
  float* scores = scratch.scores;
  const int num_columns = job.keys->num_blocks * kBlockTokens / kLanes;
  int column = 0;
  for (; column + Dot::kCols <= num_columns; column += Dot::kCols) {
    score_columns<kM, Dot::kCols, kFetchAll>(job, column, scores);
  }
  for (; column < num_columns; ++column) {
    score_columns<kM, 1, kFetchAll>(job, column, scores);
  }
  for (; column * kLanes < scored_keys(job); ++column) {
    for (int m = 0; m < kM; ++m) {
      S::store(scores + m * kTileKeys + column * kLanes, S::set(kHidden));
    }
  }
}

template <typename Dot>
template <int kM, int kN, bool kFetchAll>
[[gnu::always_inline]] inline void AttentionStages<Dot>::score_columns(const RowJob& job,
                                                                       int column, float* scores) {
  constexpr int kBlockVecs = kBlockTokens / kLanes;
  const int head_dim = job.rows->head_dim;
  const auto* queries =
      static_cast<const Operand*>(job.rows->queries) + int64_t{job.first} * head_dim;
  const std::byte* b[kN];
  const std::byte* next[kN];
  unrolled<kN>([&](auto n) {
    const int64_t offset = (column + n) % kBlockVecs * kVecBytes;
    b[n] = job.keys->keys[(column + n) / kBlockVecs] + offset;
    next[n] = job.keys->next_keys[(column + n) / kBlockVecs] + offset;
  });
  Vec sums[kM][kN];
  unrolled<kM>([&](auto m) {
    const Vec start = S::set(job.first_scores[m]);
    unrolled<kN>([&](auto n) { sums[m][n] = start; });
  });
  multiply<kM, kN, kFetchAll>(sums, queries, head_dim, b, next, job, kBlockVecs * kVecBytes,
                              head_dim / Dot::kPack);
  if (job.hidden_from < (column + kN) * kLanes) {
    unrolled<kN>([&](auto n) {
      const typename S::Mask seen = S::lanes(0, job.hidden_from - (column + n) * kLanes);
      unrolled<kM>([&](auto m) { sums[m][n] = S::select(seen, sums[m][n], S::set(kHidden)); });
    });
  }
  unrolled<kM>([&](auto m) {
    unrolled<kN>(
        [&](auto n) { S::store(scores + m * kTileKeys + (column + n) * kLanes, sums[m][n]); });
  });
}

template <typename Dot>
template <int kM>
[[gnu::always_inline]] inline void AttentionStages<Dot>::weigh(const RowJob& job,
                                                               Scratch& scratch) {
  if (job.rows->score_cap > 0) cap_scores(job, scratch.scores);
  if (job.see_differently) hide<kM>(job, scratch.scores);
  if (exceeds_limits<kM>(job, scratch.scores)) move_starts(job, scratch.scores);
  const int num_keys = scored_keys(job);
  for (int m = 0; m < kM; ++m) {
    const float* scores = scratch.scores + m * kTileKeys;
    float* sums = job.rows->sums + int64_t{job.first + m} * kMaxLanes;
    Vec sum = S::load(sums);
    for (int i = 0; i < num_keys; i += 2 * kLanes) {
      const Vec x = exp2_of<S, Dot::kExpDegree>(S::load(scores + i));
      const Vec y = exp2_of<S, Dot::kExpDegree>(S::load(scores + i + kLanes));
      sum = S::add(sum, S::add(x, y));
      Dot::store_operands(scratch.weights + m * kTileKeys + i, x, y);
    }
    S::store(sums, sum);
  }
}

/// scores = cap * tanh(scores / cap) + starts.
template <typename Dot>
[[gnu::noinline]] void AttentionStages<Dot>::cap_scores(const RowJob& job, float* scores) {
  const float cap = job.rows->score_cap * kLog2E;
  const int num_keys = job.keys->num_blocks * kBlockTokens;
  for (int m = job.first; m < job.first + job.count; ++m, scores += kTileKeys) {
    const Vec start = S::set(job.rows->starts[m]);
    for (int i = 0; i < num_keys; i += kLanes) {
      const Vec share = S::mul(S::load(scores + i), S::set(1.0F / cap));
      S::store(scores + i, S::fma(S::set(cap), tanh_of<S>(share), start));
    }
  }
}

/// Hides the keys that a row doesn't see.
template <typename Dot>
template <int kM>
void AttentionStages<Dot>::hide(const RowJob& job, float* scores) {
  const int num_keys = scored_keys(job);
  for (int m = 0; m < kM; ++m, scores += kTileKeys) {
    const int begin = job.begins[job.first + m] - job.keys->first_token;
    const int end = job.ends[job.first + m] - job.keys->first_token;
    const auto hide_from = [&](int i) {
      const typename S::Mask seen = S::lanes(begin - i, end - i);
      S::store(scores + i, S::select(seen, S::load(scores + i), S::set(kHidden)));
    };
    for (int i = 0; i < begin && i < num_keys; i += kLanes) hide_from(i);
    const int last = end > 0 ? end / kLanes * kLanes : 0;
    for (int i = last; i < num_keys; i += kLanes) hide_from(i);
  }
}

template <typename Dot>
template <int kM>
bool AttentionStages<Dot>::exceeds_limits(const RowJob& job, const float* scores) {
  const int num_keys = scored_keys(job);
  bool exceeds = false;
  for (int m = 0; m < kM; ++m, scores += kTileKeys) {
    Vec top = S::load(scores);
    for (int i = kLanes; i < num_keys; i += kLanes) top = S::max(top, S::load(scores + i));
    exceeds |= S::any_above(top, S::set(job.rows->limits[job.first + m]));
  }
  return exceeds;
}

/// Moves the starts of those rows whose scores exceed their limits, by the largest score.
template <typename Dot>
[[gnu::noinline]] void AttentionStages<Dot>::move_starts(const RowJob& job, float* scores) {
  const AttentionTile& rows = *job.rows;
  const int num_keys = scored_keys(job);
  for (int m = job.first; m < job.first + job.count; ++m, scores += kTileKeys) {
    Vec top = S::load(scores);
    for (int i = kLanes; i < num_keys; i += kLanes) top = S::max(top, S::load(scores + i));
    const float largest = S::reduce_max(top);
    if (!(largest > rows.limits[m])) continue;
    const bool is_first = rows.limits[m] == kHidden;
    rows.starts[m] -= largest;
    rows.limits[m] = kHeadroom;
    for (int i = 0; i < num_keys; i += kLanes) {
      S::store(scores + i, S::sub(S::load(scores + i), S::set(largest)));
    }
    if (is_first) continue;  // nothing is summed up yet
    const Vec shrink = exp2_of<S, 6>(S::set(-largest));
    float* sums = rows.sums + int64_t{m} * kMaxLanes;
    for (int i = 0; i < kMaxLanes; i += kLanes) {
      S::store(sums + i, S::mul(S::load(sums + i), shrink));
    }
    float* outputs = rows.outputs + int64_t{m} * rows.head_dim;
    for (int i = 0; i < rows.head_dim; i += kLanes) {
      S::store(outputs + i, S::mul(S::load(outputs + i), shrink));
    }
  }
}

template <typename Dot>
template <int kM, bool kFetchAll>
[[gnu::always_inline]] inline void AttentionStages<Dot>::add_values(const RowJob& job,
                                                                    const Scratch& scratch) {
  const Operand* weights = scratch.weights;
  const int num_columns = job.rows->head_dim / kLanes;
  int column = 0;
  for (; column + Dot::kCols <= num_columns; column += Dot::kCols) {
    add_columns<kM, Dot::kCols, kFetchAll>(job, weights, column);
  }
  if constexpr (Dot::kCols > 2) {  // head_dim is a multiple of 16
    for (; column + 2 <= num_columns; column += 2) {
      add_columns<kM, 2, kFetchAll>(job, weights, column);
    }
    if (column < num_columns) add_columns<kM, 1, kFetchAll>(job, weights, column);
  }
}

template <typename Dot>
template <int kM, int kN, bool kFetchAll>
[[gnu::always_inline]] inline void AttentionStages<Dot>::add_columns(const RowJob& job,
                                                                     const Operand* weights,
                                                                     int column) {
  const int64_t head_dim = job.rows->head_dim;
  float* outputs = job.rows->outputs + job.first * head_dim + column * kLanes;
  Vec sums[kM][kN];
  unrolled<kM>([&](auto m) {
    unrolled<kN>([&](auto n) { sums[m][n] = S::load(outputs + m * head_dim + n * kLanes); });
  });
  const int64_t step_bytes = head_dim / kLanes * kVecBytes;
  for (int block = 0; block < job.keys->num_blocks; ++block) {
    const std::byte* b[kN];
    const std::byte* next[kN];
    unrolled<kN>([&](auto n) {
      b[n] = job.keys->values[block] + (column + n) * kVecBytes;
      next[n] = job.keys->next_values[block] + (column + n) * kVecBytes;
    });
    multiply<kM, kN, kFetchAll>(sums, weights + block * kBlockTokens, kTileKeys, b, next, job,
                                step_bytes, kBlockTokens / Dot::kPack);
  }
  unrolled<kM>([&](auto m) {
    unrolled<kN>([&](auto n) { S::store(outputs + m * head_dim + n * kLanes, sums[m][n]); });
  });
}

/// sums += a b over num_steps steps. a: [kM, num_steps * kPack]; b: kN columns of vectors; next:
/// what stands in the next tile where b stands in this one. The job's share of it is fetched into
/// the second-level cache meanwhile, because blocks lie anywhere in memory and the hardware's
/// prefetcher sees the end of each too late.
template <typename Dot>
template <int kM, int kN, bool kFetchAll>
[[gnu::always_inline]] inline void AttentionStages<Dot>::multiply(
    Vec (&sums)[kM][kN], const Operand* a, int64_t a_stride, const std::byte* const (&b)[kN],
    const std::byte* const (&next)[kN], const RowJob& job, int64_t step_bytes, int num_steps) {
  constexpr int kFetched = kFetchAll ? kN : (kN + 1) / 2;
  const std::byte* fetched[kFetched];
  unrolled<kFetched>([&](auto i) {
    const int n = kFetchAll ? i : job.fetched_columns[i] & (kN - 1);
    fetched[i] = !kFetchAll && job.fetch_none ? b[n] : next[n];
  });
  for (int step = 0; step < num_steps; ++step) {
    typename Dot::Packed packed[kN];
    unrolled<kN>([&](auto n) { packed[n] = Dot::load(b[n] + step * step_bytes); });
    unrolled<kFetched>([&](auto i) { __builtin_prefetch(fetched[i] + step * step_bytes, 0, 2); });
    unrolled<kM>([&](auto m) {
      const Operand* operands = a + m * a_stride + step * Dot::kPack;
      unrolled<kN>([&](auto n) { Dot::add_product(sums[m][n], packed[n], operands); });
    });
  }
}

}  // namespace
}  // namespace anyslot::cpu
