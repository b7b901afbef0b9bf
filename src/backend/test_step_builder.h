#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <numeric>
#include <utility>
#include <vector>

#include "plan/step_plan.h"

namespace anyslot {

/// Builds steps for tests, sequence by sequence; owns the block lists, so it must outlive the
/// step's use.
class TestStepBuilder {
 public:
  TestStepBuilder() = default;
  TestStepBuilder(TestStepBuilder&&) = default;

  SpanView span(int64_t num_tokens, KeyForm key_form = KeyForm::kTurned, int64_t first_angle = 0) {
    std::vector<BlockId> blocks(blocks_for(num_tokens));
    std::iota(blocks.begin(), blocks.end(), num_blocks_);
    std::ranges::reverse(blocks);  // a document's next block is not the pool's next block
    num_blocks_ += static_cast<BlockId>(blocks.size());
    block_lists_.push_back(std::move(blocks));
    return {block_lists_.back(), num_tokens, first_angle, key_form};
  }

  /// The same blocks in a list of its own.
  SpanView same_span(const SpanView& span) {
    block_lists_.emplace_back(span.blocks.begin(), span.blocks.end());
    return {block_lists_.back(), span.num_tokens, span.first_angle, span.key_form};
  }

  void begin_sequence() {
    const auto row = static_cast<int32_t>(step.rows.size());
    const auto placement = static_cast<int32_t>(step.placements.size());
    step.sequences.push_back({row, row, placement, placement});
  }
  void place(const SpanView& span, int64_t start) { place(span, start, 0, span.num_tokens); }
  void place(const SpanView& span, int64_t start, int64_t begin, int64_t end) {
    step.placements.push_back({span, begin, end, start});
    ++step.sequences.back().placement_end;
  }
  void row(int64_t position, bool sample = false) {
    const auto sequence = static_cast<int32_t>(step.sequences.size() - 1);
    step.rows.push_back({0, position, 0, 0, sequence, sample});
    ++step.sequences.back().row_end;
  }
  /// The last row and every fifth one are sampled.
  void rows(int64_t first_position, int64_t count) {
    for (int64_t r = 0; r < count; ++r) row(first_position + r, r == count - 1 || r % 5 == 2);
  }

  /// Blocks 0 to num_blocks() - 1 are in use.
  BlockId num_blocks() const { return num_blocks_; }

  StepPlan step;

 private:
  BlockId num_blocks_ = 0;
  std::deque<std::vector<BlockId>> block_lists_;
};

}  // namespace anyslot
