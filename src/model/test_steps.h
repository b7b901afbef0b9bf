#pragma once

#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "plan/step_plan.h"

namespace anyslot {

/// KV of a test: its tokens, and blocks that keep their address while plans refer to them.
struct TestSpan {
  std::vector<int32_t> token_ids;
  std::vector<BlockId> blocks;
  int64_t first_angle = 0;
  KeyForm key_form = KeyForm::kTurned;

  int64_t size() const { return static_cast<int64_t>(token_ids.size()); }
};

/// Hands out the blocks of a pool in an order that is not ascending.
class TestBlocks {
 public:
  explicit TestBlocks(int num_blocks) : order_(static_cast<size_t>(num_blocks)) {
    std::iota(order_.begin(), order_.end(), 0);
    for (size_t i = 1; i < order_.size(); i += 2) std::swap(order_[i], order_[order_.size() - i]);
  }

  TestSpan span(std::span<const int32_t> token_ids, int64_t first_angle = 0,
                KeyForm key_form = KeyForm::kTurned) {
    TestSpan span{{token_ids.begin(), token_ids.end()}, {}, first_angle, key_form};
    for (int64_t i = 0; i < blocks_for(span.size()); ++i) span.blocks.push_back(order_.at(next_++));
    return span;
  }

 private:
  std::vector<BlockId> order_;
  size_t next_ = 0;
};

/// The first `num_tokens` of a span, seen from `start`.
inline Placement placement_of(const TestSpan& span, int64_t start, int64_t num_tokens) {
  return {{span.blocks, num_tokens, span.first_angle, span.key_form}, 0, num_tokens, start};
}

/// Adds a sequence that computes tokens [begin, end) of `own`, which stands at `start` behind
/// `earlier`. `sample` tells by a token's index whether its logits are wanted.
inline void add_sequence(StepPlan& plan, const TestSpan& own, int64_t start, int64_t begin,
                         int64_t end, const std::vector<Placement>& earlier,
                         const std::function<bool(int64_t)>& sample) {
  const auto sequence = static_cast<int32_t>(plan.sequences.size());
  SequencePlan rows_and_placements;
  rows_and_placements.row_begin = static_cast<int32_t>(plan.rows.size());
  rows_and_placements.placement_begin = static_cast<int32_t>(plan.placements.size());
  for (int64_t i = begin; i < end; ++i) {
    const BlockId block = own.blocks[static_cast<size_t>(i / kBlockSize)];
    const bool turned = own.key_form == KeyForm::kTurned;
    plan.rows.push_back({.token_id = own.token_ids[static_cast<size_t>(i)],
                         .position = start + i,
                         .write_slot = int64_t{block} * kBlockSize + i % kBlockSize,
                         .write_angle = turned ? own.first_angle + i : 0,
                         .sequence = sequence,
                         .sample = sample(i)});
  }
  plan.placements.insert(plan.placements.end(), earlier.begin(), earlier.end());
  plan.placements.push_back(placement_of(own, start, end));
  rows_and_placements.row_end = static_cast<int32_t>(plan.rows.size());
  rows_and_placements.placement_end = static_cast<int32_t>(plan.placements.size());
  plan.sequences.push_back(rows_and_placements);
}

inline bool sample_all(int64_t) { return true; }
inline bool sample_none(int64_t) { return false; }

}  // namespace anyslot
