#include "engine/step_loop.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <new>
#include <ratio>
#include <utility>

#include "sample/logprobs.h"
#include "sched/admission.h"

namespace anyslot::internal {

namespace {

using Ticks = std::chrono::duration<int64_t, std::ratio<1, kTicksPerSecond>>;

int64_t steady_ticks() {
  return std::chrono::duration_cast<Ticks>(Clock::now().time_since_epoch()).count();
}

SchedulerConfig scheduler_config(const EngineParts& parts) {
  const EngineConfig& config = parts.config;
  const ModelConfig& model = parts.decoder->config();
  SchedulerConfig result{
      config.max_running_requests, config.max_batch_tokens, config.ignore_placement_angles, {}};
  for (int layer = 0; layer < model.num_layers; ++layer) {
    result.layer_windows.push_back(model.window_of(layer));
  }
  return result;
}

}  // namespace

StepLoop::StepLoop(EngineParts& parts, std::shared_ptr<CommandQueue> commands)
    : parts_(parts),
      trace_(parts.trace.get()),
      commands_(std::move(commands)),
      cache_(parts.storage->shape().num_blocks),
      scheduler_(scheduler_config(parts), cache_),
      clients_(totals_, parts.stop_token_ids),
      documents_(cache_, scheduler_, static_cast<int64_t>(parts.storage->shape().block_bytes())),
      ticks_(steady_ticks) {
  publish_stats();
}

void StepLoop::run() {
  while (!commands_->closed()) {
    const bool idle = scheduler_.num_running() + scheduler_.num_waiting() == 0;
    if (trace_ != nullptr) trace_->flush(idle ? 0 : TraceFile::kMaxPending / 2);
    if (idle) wait_idle();
    take_commands();
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
  take_commands();
  guarded([&] {
    end_all(FinishReason::kCancelled, {StatusCode::kUnavailable, "the engine is shutting down"});
  });
  send();
}

template <typename Work>
void StepLoop::guarded(const Work& work) noexcept {
  try {
    work();
  } catch (const std::exception& error) {
    fail_all(error);
  }
}

// Where memory does not suffice to tell what happened, they are told that.
void StepLoop::fail_all(const std::exception& error) noexcept {
  try {
    end_all(FinishReason::kError,
            internal_error(std::string("the engine failed in a step: ") + error.what()));
  } catch (const std::exception&) {
    while (!clients_.empty()) {
      const uint64_t id = clients_.any();
      const size_t num_choices = clients_.break_off(id);
      for (size_t choice = 0; choice < num_choices; ++choice) scheduler_.remove(id + choice);
    }
    documents_.break_off();
  }
}

// What expires meanwhile goes at its time, so that its memory does not stay till the next request.
void StepLoop::wait_idle() {
  const int64_t expiry = cache_.next_expiry();
  if (expiry == 0) return commands_->wait(std::nullopt);
  commands_->wait(Ticks(std::max<int64_t>(1, expiry + 1 - ticks_())));
}

void StepLoop::take_commands() {
  std::vector<Command> commands = commands_->take();
  cache_.set_tick(ticks_());
  for (Command& command : commands) {
    guarded([&] { std::visit([this](auto& c) { handle(c); }, command); });
  }
}

// A request that memory does not suffice for ends alone.
void StepLoop::handle(SubmitCommand& command) {
  const uint64_t id = command.choices.front()->request_id;
  const std::shared_ptr<StreamState> stream = command.stream;
  try {
    submit(command);
  } catch (const std::bad_alloc&) {
    clients_.break_off(id);
    stream->break_off();
    for (size_t choice = 0; choice < command.choices.size(); ++choice)
      scheduler_.remove(id + choice);
  }
}

void StepLoop::submit(SubmitCommand& command) {
  const Sequence& first = *command.choices.front();
  if (command.fit != nullptr) fit_beside_pins(*command.fit, cache_);
  clients_.add(command);
  if (const Status status = check_fits_beside_pins(first, cache_); !status.ok()) {
    end_request(first.request_id, FinishReason::kError, status);
    return;
  }
  for (auto& choice : command.choices) scheduler_.submit(std::move(choice));
}

void StepLoop::handle(RegisterCommand& command) {
  documents_.submit(std::move(command.document), std::move(command.done));
}

void StepLoop::handle(CancelCommand& command) {
  if (clients_.contains(command.request_id)) {
    end_request(command.request_id, FinishReason::kCancelled, {});
  } else {
    documents_.cancel(command.request_id);  // nothing when it had ended by itself
  }
}

void StepLoop::handle(CallCommand& command) {
  command.call();
  publish_stats();
  command.done();
}

void StepLoop::set_clock(std::function<int64_t()> ticks) {
  ticks_ = ticks == nullptr ? steady_ticks : std::move(ticks);
  cache_.set_tick(ticks_());
}

bool StepLoop::plan_step() {
  TraceSpan span(trace_, "schedule");
  const bool planned = scheduler_.plan_step(plan_);
  if (!planned) span.drop();
  for (Sequence* sequence : scheduler_.newly_admitted()) clients_.start(*sequence);
  handle_ended();
  return planned;
}

void StepLoop::handle_ended() {
  for (const EndedSequence& ended : scheduler_.take_ended()) {
    if (ended.sequence->has_answer()) {
      end_request(ended.sequence->request_id, FinishReason::kError, ended.status);
    } else {
      documents_.end(ended);
    }
  }
}

// Then logits need not leave the backend.
bool StepLoop::wants_only_likeliest() const {
  return std::ranges::all_of(scheduler_.sample_targets(), [](const SampleTarget& target) {
    const Sequence& sequence = *target.sequence;
    return !sequence.wants_prompt_logits() && !sequence.sampling().logprobs &&
           is_plain_greedy(sequence.sampling(), sequence.num_generated());
  });
}

Status StepLoop::forward() {
  const TraceSpan span(trace_, "forward");
  has_likeliest_ = wants_only_likeliest();
  if (has_likeliest_) return parts_.decoder->forward_greedy(plan_, *parts_.storage, likeliest_);
  return parts_.decoder->forward(plan_, *parts_.storage, logits_);
}

void StepLoop::run_step() {
  if (const Status status = forward(); !status.ok()) {
    end_all(FinishReason::kError, status);
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
    cache_.set_tick(ticks_());
    scheduler_.commit_step();
    handle_ended();
  }
  handle_samples();
}

std::span<const float> StepLoop::logits_of(size_t sample) const {
  const auto vocab = static_cast<size_t>(parts_.model.vocab_size);
  return std::span(logits_).subspan(sample * vocab, vocab);
}

void StepLoop::handle_samples() {
  const TraceSpan span(trace_, "sample",
                       {{"rows", static_cast<int64_t>(sample_positions_.size())}});
  size_t sample = 0;
  for (const SampleTarget& target : scheduler_.sample_targets()) {
    const size_t end = sample + static_cast<size_t>(target.num_rows);
    for (; target.sequence->wants_prompt_logits() && sample < end; ++sample) {
      clients_.keep_prompt_logits(*target.sequence, sample_positions_[sample], logits_of(sample));
    }
    if (target.next_token) add_token_of(*target.sequence, end - 1);
    sample = end;
  }
}

void StepLoop::add_token_of(Sequence& sequence, size_t sample) {
  if (has_likeliest_) {
    const int32_t token = likeliest_[sample];
    return token < 0 ? fail_choice(sequence) : add_token(sequence, token, {});
  }
  const std::span<const float> logits = logits_of(sample);
  const bool finite = std::ranges::all_of(logits, [](float logit) { return std::isfinite(logit); });
  if (!finite) return fail_choice(sequence);
  add_token(sequence, choose_token(sequence, logits), logits);
}

void StepLoop::fail_choice(const Sequence& sequence) {
  clients_.take_usage(sequence);
  Event event;
  event.error_code = StatusCode::kInternal;
  event.error = "the model gave logits that are not finite; its weights or its settings are broken";
  clients_.end_choice(sequence.request_id, sequence.choice, FinishReason::kError, std::move(event));
  scheduler_.remove(sequence.id);
}

void StepLoop::add_token(Sequence& sequence, int32_t token, std::span<const float> logits) {
  scheduler_.append_token(sequence, token);
  Event event;
  if (sequence.sampling().logprobs) {
    event.logprobs = {token_logprobs(logits, token, sequence.sampling().top_logprobs)};
  }
  const bool ended = clients_.add_token(sequence, std::move(event));
  if (ended) scheduler_.remove(sequence.id);
}

int32_t StepLoop::choose_token(const Sequence& sequence, std::span<const float> logits) {
  std::span<const int32_t> forbidden;
  if (sequence.num_generated() < sequence.sampling().min_tokens)
    forbidden = sequence.given->stop_token_ids;
  return sampler_.sample({logits, sequence.sampling(), sequence.prompt(), sequence.generated(),
                          forbidden, static_cast<uint32_t>(sequence.choice)});
}

void StepLoop::end_request(uint64_t request_id, FinishReason reason, const Status& error) {
  while (clients_.contains(request_id)) {
    const int choice = clients_.next_choice(request_id);
    const auto sequence = scheduler_.remove(request_id + static_cast<uint64_t>(choice));
    if (sequence != nullptr) clients_.take_usage(*sequence);
    Event event;
    if (reason == FinishReason::kError) {
      event.error = error.message();
      event.error_code = error.code();
    }
    clients_.end_choice(request_id, choice, reason, std::move(event));
  }
}

void StepLoop::end_all(FinishReason reason, const Status& error) {
  while (!clients_.empty()) end_request(clients_.any(), reason, error);
  documents_.end_all(error);
}

// One reader's failure is its own.
void StepLoop::end_failed() {
  while (const auto request_id = clients_.find_failed()) {
    end_request(*request_id, FinishReason::kCancelled, {});
  }
}

void StepLoop::send() {
  TraceSpan span(trace_, "deliver", {{"events", static_cast<int64_t>(clients_.num_unsent())}});
  if (clients_.num_unsent() == 0) span.drop();
  publish_stats();
  while (!clients_.send()) guarded([&] { end_failed(); });
  documents_.deliver();
}

void StepLoop::publish_stats() {
  const KvCacheStats cache = cache_.stats();
  Stats stats = totals_;
  stats.running_requests = scheduler_.num_running();
  stats.waiting_requests = scheduler_.num_waiting();
  stats.total_blocks = cache.total_blocks;
  stats.free_blocks = cache.free_blocks;
  stats.cached_blocks = cache.evictable_blocks;
  stats.pinned_blocks = cache.pinned_blocks;
  stats.document_entries = cache.document_entries;
  stats.referenced_entries = cache.referenced_entries;
  stats.evictions_total = cache.evictions_total;
  stats.expirations_total = cache.expirations_total;
  stats.preemptions_total = scheduler_.preemptions_total();
  const std::lock_guard lock(stats_mutex_);
  stats_ = stats;
}

Stats StepLoop::stats() const {
  const std::lock_guard lock(stats_mutex_);
  return stats_;
}

}  // namespace anyslot::internal
