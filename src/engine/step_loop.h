#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "anyslot/result.h"
#include "engine/answer_text.h"
#include "engine/command_queue.h"
#include "engine/document_desk.h"
#include "engine/engine_parts.h"
#include "engine/stream_state.h"
#include "kv/kv_cache.h"
#include "sample/sampler.h"
#include "sched/scheduler.h"

namespace anyslot::internal {

/// The engine thread's work: takes commands, plans and runs steps, samples, and feeds the streams.
/// Owns the scheduler and the cache.
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
  struct Choice {
    bool ended = false;
    std::optional<AnswerText> text;  // when stop strings must be found in it
  };
  struct Client {
    std::shared_ptr<StreamState> stream;
    Clock::time_point submitted;
    std::vector<Choice> choices;
    bool has_first_token = false;
    bool prompt_counted = false;
    Usage usage;
    std::vector<float> prompt_logits;
    int64_t prompt_logits_end = 0;  // position after the last token whose logits were kept
  };
  using Outbox = std::vector<std::pair<std::shared_ptr<StreamState>, Event>>;

  /// Fails all requests when `work` throws.
  template <typename Work>
  void guarded(const Work& work);
  void take_commands(bool wait);
  void handle(SubmitCommand& command);
  void handle(RegisterCommand& command);
  void handle(CancelCommand& command);
  void handle(CallCommand& command);
  bool plan_step();
  void handle_ended();
  bool wants_only_likeliest() const;
  Status forward();
  void run_step();
  void handle_samples();
  void keep_prompt_logits(Client& client, const SampleTarget& target, size_t first_sample);
  void add_token_of(Client& client, Sequence& sequence, size_t sample);
  void fail_choice(Client& client, const Sequence& sequence);
  /// logits: empty unless log-probabilities are wanted of them.
  void add_token(Client& client, Sequence& sequence, int32_t token, std::span<const float> logits);
  int32_t choose_token(const Sequence& sequence, std::span<const float> logits);
  static void take_usage(Client& client, const Sequence& sequence);
  void count_token(Client& client, const Sequence& sequence);
  void count_prompt(Client& client);
  void send_token(Client& client, const Sequence& sequence, Event event);
  void end_choice(uint64_t request_id, int choice, FinishReason reason, Event event);
  void post(const Client& client, Event event);
  void end_request(uint64_t request_id, FinishReason reason, const Status& error);
  void end_all(FinishReason reason, const Status& error);
  void send();
  void publish_stats();

  EngineParts& parts_;
  TraceFile* trace_;  // null: none
  std::shared_ptr<CommandQueue> commands_;
  KvCache cache_;
  Scheduler scheduler_;
  DocumentDesk documents_;
  std::function<int64_t()> ticks_;
  Sampler sampler_;
  std::unordered_map<uint64_t, Client> clients_;  // by request id
  StepPlan plan_;
  std::vector<float> logits_;       // [sampled rows of the step, vocab], unless
  bool has_likeliest_ = false;      // the backend has chosen:
  std::vector<int32_t> likeliest_;  // [sampled rows of the step]; -1: logits that are not finite
  std::vector<int64_t> sample_positions_;
  Outbox outbox_;  // events of this step; sent when the books are in order

  Stats totals_;  // the counters kept here
  mutable std::mutex stats_mutex_;
  Stats stats_;
};

}  // namespace anyslot::internal
