#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <list>
#include <memory>
#include <utility>
#include <vector>

#include "kv/kv_cache.h"
#include "plan/step_plan.h"
#include "sched/encode_jobs.h"
#include "sched/sequence.h"
#include "sched/step_builder.h"

namespace anyslot {

struct SchedulerConfig {
  int max_running_requests = 64;  // answers; documents encoded ahead have slots of their own
  int max_batch_tokens = 2048;
  bool ignore_placement_angles = false;  // see EngineConfig
  /// Tokens that each of the model's layers sees back, 0: all. Empty: no layer has a window.
  std::vector<int64_t> layer_windows = {};
};

/// What a sequence that the scheduler itself took out came to.
struct EndedSequence {
  std::unique_ptr<Sequence> sequence;
  /// Of a document to be encoded ahead: ok when it is ready. Else why it cannot be served.
  Status status;
  DocumentInfo document;  // the one that is ready
};

/// Slots for documents that are encoded ahead of their use, beside those for answers.
constexpr int document_slots(int max_running_requests) {
  return std::max(1, max_running_requests / 4);
}

/// Continuous batching over one KvCache. Deterministic; knows no device. One thread owns it.
///
/// Answers and documents that are encoded ahead stand in lists of their own: a document waits while
/// an answer waits for room, and gives its room back before an answer does.
///
/// The cycle: plan_step, run the plan, commit_step, then append_token or finish for each sample
/// target.
class Scheduler {
 public:
  Scheduler(const SchedulerConfig& config, KvCache& cache);

  /// Queues a sequence; ids must ascend. The caller has checked max_blocks() against the pool. A
  /// further choice starts when choice 0 of its request has its first token or is gone.
  void submit(std::unique_ptr<Sequence> sequence);

  /// Plans the next step; false when there is nothing to run. The plan refers to the scheduler's
  /// own memory and is valid until commit_step.
  bool plan_step(StepPlan& plan);
  /// What the latest plan_step admitted for the first time. Valid until they are removed.
  const std::vector<Sequence*>& newly_admitted() const { return newly_admitted_; }
  /// What ended since the last call, in plan_step or commit_step: documents that are ready, and
  /// choices that were refused because documents are pinned, or must be and cannot. With a refused
  /// one go the waiting choices of the same request; none of them runs.
  std::vector<EndedSequence> take_ended() { return std::exchange(ended_, {}); }
  /// The sampled rows of the planned step, in plan order.
  const std::vector<SampleTarget>& sample_targets() const { return builder_.sample_targets(); }
  /// The planned step has run: its tokens have their KV.
  void commit_step();

  void append_token(Sequence& sequence, int32_t token_id);
  /// Removes a sequence between steps, in whatever state, and frees all that it held. Returns it,
  /// or nullptr when the id is unknown.
  std::unique_ptr<Sequence> remove(uint64_t id);

  /// Each choice counts as one, and so does each document that is encoded ahead.
  int64_t num_running() const { return std::ssize(answers_.running) + std::ssize(ahead_.running); }
  int64_t num_waiting() const { return std::ssize(answers_.waiting) + std::ssize(ahead_.waiting); }
  int64_t preemptions_total() const { return preemptions_total_; }

  /// The cache's counts against what the sequences hold.
  Status check_integrity() const;

 private:
  using SequenceList = std::list<std::unique_ptr<Sequence>>;  // in ascending order of id
  /// First come, first served.
  struct Lane {
    int64_t num_slots = 0;
    SequenceList waiting;
    SequenceList running;
    bool has_free_slot() const { return std::ssize(running) < num_slots; }
  };

  Lane& lane_of(const Sequence& sequence) { return sequence.has_answer() ? answers_ : ahead_; }
  bool waits_for_prompt(const Sequence& sequence) const;
  void admit_waiting();
  bool admit_from(Lane& lane);
  Expected<bool> try_admission(Sequence& sequence);
  void refuse(Lane& lane, SequenceList::iterator first, Status status);
  bool end_ready_documents();
  void grow_decoding();
  bool grow(Sequence& sequence);
  void preempt(Lane& lane, SequenceList::iterator victim);
  bool is_held_ahead_only(const CacheEntry& entry) const;
  SequenceList::iterator document_to_preempt(const Sequence* answer);
  bool make_room_for(const Sequence& answer);
  void commit_jobs();
  void commit_sequence(Sequence& sequence);
  void index_text(SequenceSpan& span, const Sequence& sequence);

  KvCache& cache_;
  StepBuilder builder_;
  EncodeJobs jobs_;
  Lane answers_;
  Lane ahead_;  // documents that are encoded ahead of their use
  std::vector<Sequence*> newly_admitted_;
  std::vector<EndedSequence> ended_;
  int64_t preemptions_total_ = 0;
};

}  // namespace anyslot
