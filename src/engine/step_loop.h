#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "anyslot/result.h"
#include "engine/client_book.h"
#include "engine/command_queue.h"
#include "engine/document_desk.h"
#include "engine/engine_parts.h"
#include "kv/kv_cache.h"
#include "sample/sampler.h"
#include "sched/scheduler.h"

namespace anyslot::internal {

/// The engine thread's work: takes commands and runs steps. Owns the scheduler and the cache.
class StepLoop {
 public:
  StepLoop(EngineParts& parts, std::shared_ptr<CommandQueue> commands);

  /// Until the queue is closed; then cancels what is left.
  void run();

  /// What times to live are measured by, in kTicksPerSecond; unset: the steady clock. Engine thread
  /// only; for tests.
  void set_clock(std::function<int64_t()> ticks);

  /// From any thread: as of the last step.
  Stats stats() const;

  /// Engine thread only, through a CallCommand.
  Status check_integrity() const { return scheduler_.check_integrity(); }
  KvCache& cache() { return cache_; }
  DocumentDesk& documents() { return documents_; }

 private:
  /// Fails all requests when `work` throws.
  template <typename Work>
  void guarded(const Work& work) noexcept;
  void fail_all(const std::exception& error) noexcept;
  void wait_idle();
  void take_commands();
  void handle(SubmitCommand& command);
  void submit(SubmitCommand& command);
  void handle(RegisterCommand& command);
  void handle(CancelCommand& command);
  void handle(CallCommand& command);
  bool plan_step();
  void handle_ended();
  bool wants_only_likeliest() const;
  Status forward();
  void run_step();
  void handle_samples();
  std::span<const float> logits_of(size_t sample) const;
  void add_token_of(Sequence& sequence, size_t sample);
  void fail_choice(const Sequence& sequence);
  /// logits: empty unless log-probabilities are wanted of them.
  void add_token(Sequence& sequence, int32_t token, std::span<const float> logits);
  int32_t choose_token(const Sequence& sequence, std::span<const float> logits);
  void end_request(uint64_t request_id, FinishReason reason, const Status& error);
  void end_all(FinishReason reason, const Status& error);
  void end_failed();
  void send();
  void publish_stats();

  EngineParts& parts_;
  TraceFile* trace_;  // null: none
  std::shared_ptr<CommandQueue> commands_;
  Stats totals_;  // the counters kept here
  KvCache cache_;
  Scheduler scheduler_;
  ClientBook clients_;  // its events are sent when the books are in order
  DocumentDesk documents_;
  std::function<int64_t()> ticks_;
  Sampler sampler_;
  StepPlan plan_;
  std::vector<float> logits_;       // [sampled rows of the step, vocab], unless
  bool has_likeliest_ = false;      // the backend has chosen:
  std::vector<int32_t> likeliest_;  // [sampled rows of the step]; -1: logits that are not finite
  std::vector<int64_t> sample_positions_;
  mutable std::mutex stats_mutex_;
  Stats stats_;
};

}  // namespace anyslot::internal
