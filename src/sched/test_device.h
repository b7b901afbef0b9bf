#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "plan/step_plan.h"

namespace anyslot {

/// Runs step plans over a pool that remembers, for each slot, which token was written at which
/// angle. A row's "logits" are a hash of what it sees, so that equal answers mean equal views.
class TestDevice {
 public:
  /// The next token after each sampled row, in plan order.
  std::vector<int32_t> run(const StepPlan& plan) {
    for (const BlockCopy& copy : plan.copies) copy_block(copy);
    for (const Row& row : plan.rows) slots_[row.write_slot] = Slot{row.token_id, row.write_angle};
    std::vector<int32_t> samples;
    for (const Row& row : plan.rows) {
      views.push_back(view(plan, row));
      if (row.sample) samples.push_back(answer(views.back()));
    }
    return samples;
  }

  /// A visible key: its token, and its distance from the query as the angles have it.
  struct Key {
    int32_t token_id = 0;
    int64_t distance = 0;
    bool operator==(const Key&) const = default;
  };
  struct View {
    Row row;
    std::vector<Key> keys;  // in order of placement
  };
  std::vector<View> views;  // of every row that ran

 private:
  struct Slot {
    int32_t token_id = 0;
    int64_t angle = 0;
  };

  void copy_block(const BlockCopy& copy) {
    for (int i = 0; i < copy.num_tokens; ++i) {
      Slot slot = slots_.at(int64_t{copy.src} * kBlockSize + i);
      slot.angle += copy.turn_by;
      slots_[int64_t{copy.dst} * kBlockSize + i] = slot;
    }
  }

  View view(const StepPlan& plan, const Row& row) const {
    View result{row, {}};
    const SequencePlan& sequence = plan.sequences[static_cast<size_t>(row.sequence)];
    for (int32_t i = sequence.placement_begin; i < sequence.placement_end; ++i) {
      const Placement& placement = plan.placements[static_cast<size_t>(i)];
      const int64_t d = row.position - placement.start;
      for (int64_t key = placement.begin; key < std::min(placement.end, d + 1); ++key) {
        const BlockId block = placement.span.blocks[static_cast<size_t>(key / kBlockSize)];
        const Slot& slot = slots_.at(int64_t{block} * kBlockSize + key % kBlockSize);
        const bool turned = placement.span.key_form == KeyForm::kTurned;
        const int64_t query_angle = turned ? d + placement.span.first_angle : row.position;
        const int64_t key_angle = turned ? slot.angle : slot.angle + placement.start + key;
        result.keys.push_back({slot.token_id, query_angle - key_angle});
      }
    }
    return result;
  }

  static int32_t answer(const View& view) {
    uint32_t hash = 2166136261U;
    for (const Key& key : view.keys)
      hash = (hash ^ static_cast<uint32_t>(key.token_id)) * 16777619U;
    return static_cast<int32_t>(hash % 1000);
  }

  std::unordered_map<int64_t, Slot> slots_;
};

}  // namespace anyslot
