#include "engine/step_loop.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <utility>

namespace anyslot::internal {

namespace {

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

SchedulerConfig scheduler_config(const EngineConfig& config) {
  return {config.max_running_requests, config.max_batch_tokens, config.ignore_placement_angles};
}

}  // namespace

StepLoop::StepLoop(EngineParts& parts, std::shared_ptr<CommandQueue> commands)
    : parts_(parts),
      trace_(parts.trace.get()),
      commands_(std::move(commands)),
      cache_(parts.storage->shape().num_blocks),
      scheduler_(scheduler_config(parts.config), cache_) {
  publish_stats();
}

void StepLoop::run() {
  while (!commands_->closed()) {
    const bool idle = scheduler_.num_running() + scheduler_.num_waiting() == 0;
    if (trace_ != nullptr) trace_->flush(idle ? 0 : TraceFile::kMaxPending / 2);
    guarded([&] { take_commands(idle); });
    TraceSpan span(trace_, "step");
    guarded([&] {
      if (!plan_step()) return span.drop();
      span.set({{"step", totals_.steps_total},
                {"rows", static_cast<int64_t>(plan_.rows.size())},
                {"sequences", static_cast<int64_t>(plan_.sequences.size())},
                {"placements", static_cast<int64_t>(plan_.placements.size())},
                {"copies", static_cast<int64_t>(plan_.copies.size())},
                {"kv_tokens_read", plan_.kv_tokens_read}});
      run_step();
    });
    send();
  }
  take_commands(false);
  for (const auto& sequence : scheduler_.remove_all()) {
    finish(sequence->id, FinishReason::kCancelled, {});
  }
  send();
}

template <typename Work>
void StepLoop::guarded(const Work& work) {
  try {
    work();
  } catch (const std::exception& error) {
    fail_all(std::string("the engine failed in a step: ") + error.what());
  }
}

void StepLoop::take_commands(bool wait) {
  for (Command& command : commands_->take(wait)) {
    std::visit([this](auto& c) { handle(c); }, command);
  }
}

void StepLoop::handle(SubmitCommand& command) {
  Client client;
  client.stream = std::move(command.stream);
  client.submitted = command.submitted;
  clients_.emplace(command.sequence->id, std::move(client));
  scheduler_.submit(std::move(command.sequence));
}

void StepLoop::handle(CancelCommand& command) {
  const std::unique_ptr<Sequence> sequence = scheduler_.remove(command.id);
  if (sequence == nullptr) return;  // it had ended by itself
  Client& client = clients_.at(command.id);
  if (!client.has_first_token) client.usage = sequence->usage;
  client.usage.completion_tokens = sequence->num_generated();
  finish(command.id, FinishReason::kCancelled, {});
}

void StepLoop::handle(CallCommand& command) { command.call(); }

bool StepLoop::plan_step() {
  TraceSpan span(trace_, "schedule");
  const bool planned = scheduler_.plan_step(plan_);
  if (!planned) span.drop();
  return planned;
}

Status StepLoop::forward() {
  const TraceSpan span(trace_, "forward");
  return parts_.decoder->forward(plan_, *parts_.storage, logits_);
}

void StepLoop::run_step() {
  if (const Status status = forward(); !status.ok()) {
    fail_all(status.message());
    return;
  }
  totals_.steps_total += 1;
  totals_.kv_tokens_read_total += plan_.kv_tokens_read;
  totals_.blocks_copied_total += static_cast<int64_t>(plan_.copies.size());
  sample_positions_.clear();
  for (const Row& row : plan_.rows) {
    if (row.sample) sample_positions_.push_back(row.position);
  }
  {
    const TraceSpan span(trace_, "commit");
    scheduler_.commit_step();
  }
  handle_samples();
}

void StepLoop::handle_samples() {
  const TraceSpan span(trace_, "sample",
                       {{"rows", static_cast<int64_t>(sample_positions_.size())}});
  const auto vocab = static_cast<size_t>(parts_.model.vocab_size);
  size_t sample = 0;
  for (const SampleTarget& target : scheduler_.sample_targets()) {
    Client& client = clients_.at(target.sequence->id);
    const size_t end = sample + static_cast<size_t>(target.num_rows);
    if (target.sequence->prompt_logits) keep_prompt_logits(client, target, sample);
    if (target.next_token) {
      add_token(client, *target.sequence,
                std::span<const float>(logits_).subspan((end - 1) * vocab, vocab));
    }
    sample = end;
  }
}

// A preempted request computes its prompt again; what was kept before stays.
void StepLoop::keep_prompt_logits(Client& client, const SampleTarget& target, size_t first_sample) {
  const auto vocab = static_cast<std::ptrdiff_t>(parts_.model.vocab_size);
  for (int32_t i = 0; i < target.num_rows; ++i) {
    const size_t sample = first_sample + static_cast<size_t>(i);
    const int64_t position = sample_positions_[sample];
    if (position < client.prompt_logits_end || position >= target.sequence->num_prompt_tokens)
      continue;
    const auto begin = logits_.begin() + static_cast<std::ptrdiff_t>(sample) * vocab;
    client.prompt_logits.insert(client.prompt_logits.end(), begin, begin + vocab);
    client.prompt_logits_end = position + 1;
  }
}

void StepLoop::add_token(Client& client, Sequence& sequence, std::span<const float> logits) {
  if (!std::all_of(logits.begin(), logits.end(),
                   [](float logit) { return std::isfinite(logit); })) {
    fail(sequence.id,
         "the model gave logits that are not finite; its weights or its settings are broken");
    return;
  }
  const auto position = static_cast<int64_t>(sequence.tokens.size());
  const int32_t token = sampler_.sample(logits, sequence.sampling, position);
  scheduler_.append_token(sequence, token);
  if (!std::exchange(client.has_first_token, true)) {
    client.usage = sequence.usage;
    client.usage.ttft_ms = milliseconds_since(client.submitted);
    totals_.prompt_tokens_total += sequence.usage.prompt_tokens;
    totals_.cached_tokens_total += sequence.usage.cached_tokens;
  }
  totals_.generated_tokens_total += 1;
  client.usage.completion_tokens = sequence.num_generated();

  Event event;
  event.token_ids = {token};
  event.prompt_logits = std::exchange(client.prompt_logits, {});
  const auto& stops = sequence.stop_token_ids;
  const uint64_t id = sequence.id;
  if (std::find(stops.begin(), stops.end(), token) != stops.end()) {
    scheduler_.remove(id);
    finish(id, FinishReason::kStop, std::move(event));
  } else if (sequence.num_generated() >= sequence.sampling.max_tokens) {
    scheduler_.remove(id);
    finish(id, FinishReason::kLength, std::move(event));
  } else {
    outbox_.emplace_back(client.stream, std::move(event));
  }
}

void StepLoop::finish(uint64_t id, FinishReason reason, Event event) {
  auto client = clients_.extract(id);
  client.mapped().usage.total_ms = milliseconds_since(client.mapped().submitted);
  event.finish_reason = reason;
  event.usage = std::move(client.mapped().usage);
  outbox_.emplace_back(std::move(client.mapped().stream), std::move(event));
}

void StepLoop::fail(uint64_t id, const std::string& message) {
  scheduler_.remove(id);
  Event event;
  event.error = message;
  finish(id, FinishReason::kError, std::move(event));
}

void StepLoop::fail_all(const std::string& message) {
  while (!clients_.empty()) fail(clients_.begin()->first, message);
}

void StepLoop::send() {
  TraceSpan span(trace_, "deliver", {{"events", static_cast<int64_t>(outbox_.size())}});
  if (outbox_.empty()) span.drop();
  publish_stats();
  for (auto& [stream, event] : outbox_) stream->push(std::move(event));
  outbox_.clear();
}

void StepLoop::publish_stats() {
  const KvCacheStats cache = cache_.stats();
  Stats stats = totals_;
  stats.running_requests = scheduler_.num_running();
  stats.waiting_requests = scheduler_.num_waiting();
  stats.total_blocks = cache.total_blocks;
  stats.free_blocks = cache.free_blocks;
  stats.cached_blocks = cache.evictable_blocks;
  stats.document_entries = cache.document_entries;
  stats.referenced_entries = cache.referenced_entries;
  stats.evictions_total = cache.evictions_total;
  stats.preemptions_total = scheduler_.preemptions_total();
  const std::lock_guard lock(stats_mutex_);
  stats_ = stats;
}

Stats StepLoop::stats() const {
  const std::lock_guard lock(stats_mutex_);
  return stats_;
}

}  // namespace anyslot::internal
