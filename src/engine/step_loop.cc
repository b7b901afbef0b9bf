#include "engine/step_loop.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <ratio>
#include <utility>

#include "sample/logprobs.h"
#include "sched/admission.h"

namespace anyslot::internal {

namespace {

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

int64_t steady_ticks() {
  using Ticks = std::chrono::duration<int64_t, std::ratio<1, kTicksPerSecond>>;
  return std::chrono::duration_cast<Ticks>(Clock::now().time_since_epoch()).count();
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
      scheduler_(scheduler_config(parts.config), cache_),
      documents_(cache_, scheduler_, static_cast<int64_t>(parts.storage->shape().block_bytes())),
      ticks_(steady_ticks) {
  publish_stats();
}

void StepLoop::run() {
  while (!commands_->closed()) {
    const bool idle = scheduler_.num_running() + scheduler_.num_waiting() == 0;
    if (trace_ != nullptr) trace_->flush(idle ? 0 : TraceFile::kMaxPending / 2);
    take_commands(idle);
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
  end_all(FinishReason::kCancelled, {StatusCode::kUnavailable, "the engine is shutting down"});
  send();
}

template <typename Work>
void StepLoop::guarded(const Work& work) {
  try {
    work();
  } catch (const std::exception& error) {
    end_all(FinishReason::kError,
            internal_error(std::string("the engine failed in a step: ") + error.what()));
  }
}

void StepLoop::take_commands(bool wait) {
  std::vector<Command> commands = commands_->take(wait);
  cache_.set_tick(ticks_());
  for (Command& command : commands) {
    guarded([&] { std::visit([this](auto& c) { handle(c); }, command); });
  }
}

void StepLoop::handle(SubmitCommand& command) {
  const Sequence& first = *command.choices.front();
  Client client;
  client.stream = std::move(command.stream);
  client.submitted = command.submitted;
  client.choices.resize(command.choices.size());
  for (size_t i = 0; i < command.texts.size(); ++i) {
    client.choices[i].text = std::move(command.texts[i]);
  }
  clients_.emplace(first.request_id, std::move(client));
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
  for (Sequence* sequence : scheduler_.newly_admitted()) {
    sequence->usage.queue_ms = milliseconds_since(clients_.at(sequence->request_id).submitted);
  }
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

void StepLoop::handle_samples() {
  const TraceSpan span(trace_, "sample",
                       {{"rows", static_cast<int64_t>(sample_positions_.size())}});
  size_t sample = 0;
  for (const SampleTarget& target : scheduler_.sample_targets()) {
    Client& client = clients_.at(target.sequence->request_id);
    const size_t end = sample + static_cast<size_t>(target.num_rows);
    if (target.sequence->wants_prompt_logits()) keep_prompt_logits(client, target, sample);
    if (target.next_token) add_token_of(client, *target.sequence, end - 1);
    sample = end;
  }
}

// A preempted request computes its prompt again; what was kept before stays.
void StepLoop::keep_prompt_logits(Client& client, const SampleTarget& target, size_t first_sample) {
  const auto vocab = static_cast<std::ptrdiff_t>(parts_.model.vocab_size);
  for (int32_t i = 0; i < target.num_rows; ++i) {
    const size_t sample = first_sample + static_cast<size_t>(i);
    const int64_t position = sample_positions_[sample];
    if (position < client.prompt_logits_end ||
        position >= target.sequence->given->num_prompt_tokens())
      continue;
    const auto begin = logits_.begin() + static_cast<std::ptrdiff_t>(sample) * vocab;
    client.prompt_logits.insert(client.prompt_logits.end(), begin, begin + vocab);
    client.prompt_logits_end = position + 1;
  }
}

void StepLoop::add_token_of(Client& client, Sequence& sequence, size_t sample) {
  if (has_likeliest_) {
    const int32_t token = likeliest_[sample];
    return token < 0 ? fail_choice(client, sequence) : add_token(client, sequence, token, {});
  }
  const auto vocab = static_cast<size_t>(parts_.model.vocab_size);
  const std::span<const float> logits =
      std::span<const float>(logits_).subspan(sample * vocab, vocab);
  const bool finite = std::ranges::all_of(logits, [](float logit) { return std::isfinite(logit); });
  if (!finite) return fail_choice(client, sequence);
  add_token(client, sequence, choose_token(sequence, logits), logits);
}

void StepLoop::fail_choice(Client& client, const Sequence& sequence) {
  take_usage(client, sequence);
  Event event;
  event.error_code = StatusCode::kInternal;
  event.error = "the model gave logits that are not finite; its weights or its settings are broken";
  const std::unique_ptr<Sequence> removed = scheduler_.remove(sequence.id);
  end_choice(removed->request_id, removed->choice, FinishReason::kError, std::move(event));
}

void StepLoop::add_token(Client& client, Sequence& sequence, int32_t token,
                         std::span<const float> logits) {
  scheduler_.append_token(sequence, token);
  count_token(client, sequence);

  Event event;
  event.choice = sequence.choice;
  event.token_ids = {token};
  event.prompt_logits = std::exchange(client.prompt_logits, {});
  if (sequence.sampling().logprobs) {
    event.logprobs = {token_logprobs(logits, token, sequence.sampling().top_logprobs)};
  }
  send_token(client, sequence, std::move(event));
}

int32_t StepLoop::choose_token(const Sequence& sequence, std::span<const float> logits) {
  std::span<const int32_t> forbidden;
  if (sequence.num_generated() < sequence.sampling().min_tokens)
    forbidden = sequence.given->stop_token_ids;
  return sampler_.sample({logits, sequence.sampling(), sequence.prompt(), sequence.generated(),
                          forbidden, static_cast<uint32_t>(sequence.choice)});
}

// The prompt's usage is that of choice 0, known once it was admitted.
void StepLoop::take_usage(Client& client, const Sequence& sequence) {
  if (sequence.choice == 0 && !client.has_first_token) client.usage = sequence.usage;
}

void StepLoop::count_token(Client& client, const Sequence& sequence) {
  take_usage(client, sequence);
  if (!std::exchange(client.has_first_token, true)) {
    client.usage.ttft_ms = milliseconds_since(client.submitted);
    count_prompt(client);
  }
  totals_.generated_tokens_total += 1;
  client.usage.completion_tokens += 1;
}

// Once, and not for a request that was never admitted.
void StepLoop::count_prompt(Client& client) {
  const Usage& usage = client.usage;
  if (usage.prompt_tokens == 0 || std::exchange(client.prompt_counted, true)) return;
  totals_.prompt_tokens_total += usage.prompt_tokens;
  totals_.cached_tokens_total += usage.cached_tokens;
  totals_.text_cached_tokens_total += usage.cached_tokens;
  for (const DocumentUsage& document : usage.documents) {
    totals_.text_cached_tokens_total -= document.cached_tokens;
    totals_.document_pool_tokens_total += document.cached_tokens;
    const bool joined = document.source == DocumentSource::kJoined;
    (joined ? totals_.document_joined_tokens_total : totals_.document_computed_tokens_total) +=
        document.tokens - document.cached_tokens;
  }
}

// Sends the newest token, and ends the choice if it is the last.
void StepLoop::send_token(Client& client, const Sequence& sequence, Event event) {
  const SamplingParams& sampling = sequence.sampling();
  const int32_t token = sequence.answer.back();
  const auto contains_token = [token](const std::vector<int32_t>& ids) {
    return std::find(ids.begin(), ids.end(), token) != ids.end();
  };
  const bool is_stop_token = contains_token(sequence.given->stop_token_ids);
  auto& text = client.choices[static_cast<size_t>(sequence.choice)].text;
  if (text) event.text = text->add(token, is_stop_token);

  std::optional<FinishReason> reason;
  if (is_stop_token) {
    reason = FinishReason::kStop;
    const bool by_model = !sampling.ignore_eos && contains_token(parts_.stop_token_ids);
    if (!by_model) event.stop_reason = token;
  } else if (text && text->stop_string()) {
    reason = FinishReason::kStop;
    event.stop_reason = sampling.stop[*text->stop_string()];
  } else if (sequence.num_generated() >= sampling.max_tokens) {
    reason = FinishReason::kLength;
  }
  if (!reason) {
    post(client, std::move(event));
    return;
  }
  const std::unique_ptr<Sequence> removed = scheduler_.remove(sequence.id);
  end_choice(removed->request_id, removed->choice, *reason, std::move(event));
}

void StepLoop::end_choice(uint64_t request_id, int choice, FinishReason reason, Event event) {
  Client& client = clients_.at(request_id);
  Choice& ended = client.choices[static_cast<size_t>(choice)];
  ended.ended = true;
  if (ended.text && !ended.text->stop_string()) event.text += ended.text->finish();
  event.choice = choice;
  event.finish_reason = reason;
  event.last = std::all_of(client.choices.begin(), client.choices.end(),
                           [](const Choice& other) { return other.ended; });
  if (event.last) {
    count_prompt(client);
    client.usage.total_ms = milliseconds_since(client.submitted);
    event.usage = std::move(client.usage);
  }
  const bool last = event.last;
  post(client, std::move(event));
  if (last) clients_.erase(request_id);
}

void StepLoop::post(const Client& client, Event event) {
  event.at_ms = milliseconds_since(client.submitted);
  outbox_.emplace_back(client.stream, std::move(event));
}

void StepLoop::end_request(uint64_t request_id, FinishReason reason, const Status& error) {
  for (int choice = 0; clients_.contains(request_id); ++choice) {
    Client& client = clients_.at(request_id);
    if (client.choices[static_cast<size_t>(choice)].ended) continue;
    const auto sequence = scheduler_.remove(request_id + static_cast<uint64_t>(choice));
    if (sequence != nullptr) take_usage(client, *sequence);
    Event event;
    if (reason == FinishReason::kError) {
      event.error = error.message();
      event.error_code = error.code();
    }
    end_choice(request_id, choice, reason, std::move(event));
  }
}

void StepLoop::end_all(FinishReason reason, const Status& error) {
  while (!clients_.empty()) end_request(clients_.begin()->first, reason, error);
  documents_.end_all(error);
}

void StepLoop::send() {
  TraceSpan span(trace_, "deliver", {{"events", static_cast<int64_t>(outbox_.size())}});
  if (outbox_.empty()) span.drop();
  publish_stats();
  for (auto& [stream, event] : outbox_) stream->push(std::move(event));
  outbox_.clear();
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
