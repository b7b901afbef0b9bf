#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "plan/step_plan.h"
#include "sched/encode_jobs.h"
#include "sched/sequence.h"

namespace anyslot {

/// The sampled rows of one sequence in the step in flight.
struct SampleTarget {
  Sequence* sequence = nullptr;
  int32_t num_rows = 0;     // consecutive among the step's sampled rows
  bool next_token = false;  // the last of them gives the sequence's next token
};

/// Fills a StepPlan row by row, up to a token budget. Marks what it schedules in the spans and jobs
/// (num_scheduled, copy_scheduled).
class StepBuilder {
 public:
  /// layer_windows: see SchedulerConfig.
  StepBuilder(int max_batch_tokens, bool ignore_placement_angles,
              std::span<const int64_t> layer_windows);

  void begin(StepPlan& plan);
  int64_t budget() const { return budget_; }

  /// Encodes the sequence's missing documents, then as much of its text as may run: every span
  /// before it must be known by the end of this step, and a document must be ready before it can be
  /// copied.
  void add_prefill(Sequence& sequence, EncodeJobs& jobs);
  /// One row for the newest token.
  void add_decode(Sequence& sequence);
  /// Sets kv_tokens_read.
  void finish();

  const std::vector<SampleTarget>& sample_targets() const { return sample_targets_; }

 private:
  /// Tokens that attention reads once, whoever asks for them: the address of the blocks names a
  /// span, since sharers refer to the cache entry's own list. Raw keys are turned to one start at a
  /// time, so equal starts alone share a reading.
  struct Reading {
    const BlockId* blocks;
    int64_t placement_begin;
    int64_t start;
    int64_t begin;
    int64_t end;

    auto operator<=>(const Reading&) const = default;
    bool is_same_as(const Reading& other) const {
      return blocks == other.blocks && placement_begin == other.placement_begin &&
             start == other.start;
    }
  };
  struct LayersOfWindow {
    int64_t window;  // 0: none
    int64_t num_layers;
  };

  void add_encode_rows(CacheEntry& entry, EncodeJob& job);
  bool reach_span(SequenceSpan& span, const EncodeJobs& jobs);
  void add_own_rows(Sequence& sequence, SequenceSpan& span, SampleTarget& target);
  void add_placements(const Sequence& sequence);
  void add_document_placements(const SequenceSpan& span);
  void begin_sequence();
  void end_sequence();
  int64_t count_tokens_read(int64_t window);

  int64_t max_batch_tokens_;
  bool ignore_placement_angles_;
  std::vector<LayersOfWindow> windows_;  // one each, at least one
  int64_t budget_ = 0;
  StepPlan* plan_ = nullptr;
  std::vector<SampleTarget> sample_targets_;
  std::vector<Reading> readings_;  // kept between steps for its memory
};

}  // namespace anyslot
