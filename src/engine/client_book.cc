#include "engine/client_book.h"

#include <algorithm>

namespace anyslot::internal {

namespace {

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

}  // namespace

void ClientBook::add(SubmitCommand& command) {
  Client client;
  client.stream = std::move(command.stream);
  client.submitted = command.submitted;
  client.choices.resize(command.choices.size());
  client.num_running = command.choices.size();
  for (size_t i = 0; i < command.texts.size(); ++i) {
    client.choices[i].text = std::move(command.texts[i]);
  }
  clients_.emplace(command.choices.front()->request_id, std::move(client));
}

int ClientBook::next_choice(uint64_t request_id) const {
  const std::vector<Choice>& choices = clients_.at(request_id).choices;
  const auto next =
      std::ranges::find_if(choices, [](const Choice& choice) { return !choice.ended; });
  return static_cast<int>(next - choices.begin());
}

void ClientBook::start(Sequence& sequence) const {
  sequence.usage.queue_ms = milliseconds_since(clients_.at(sequence.request_id).submitted);
}

void ClientBook::take_usage(Client& client, const Sequence& sequence) {
  if (sequence.choice == 0 && !client.has_first_token) client.usage = sequence.usage;
}

void ClientBook::take_usage(const Sequence& sequence) {
  take_usage(clients_.at(sequence.request_id), sequence);
}

void ClientBook::keep_prompt_logits(const Sequence& sequence, int64_t position,
                                    std::span<const float> row) {
  Client& client = clients_.at(sequence.request_id);
  if (position < client.prompt_logits_end || position >= sequence.given->num_prompt_tokens())
    return;
  client.prompt_logits.insert(client.prompt_logits.end(), row.begin(), row.end());
  client.prompt_logits_end = position + 1;
}

void ClientBook::count_token(Client& client, const Sequence& sequence) {
  take_usage(client, sequence);
  if (!std::exchange(client.has_first_token, true)) {
    client.usage.ttft_ms = milliseconds_since(client.submitted);
    count_prompt(client);
  }
  totals_.generated_tokens_total += 1;
  client.usage.completion_tokens += 1;
}

// Once, and not for a request that was never admitted.
void ClientBook::count_prompt(Client& client) {
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

bool ClientBook::add_token(const Sequence& sequence, Event event) {
  Client& client = clients_.at(sequence.request_id);
  const bool is_first = !client.has_first_token;
  count_token(client, sequence);
  if (is_first) event.usage = client.usage;
  const int32_t token = sequence.answer.back();
  event.choice = sequence.choice;
  event.token_ids = {token};
  event.prompt_logits = std::exchange(client.prompt_logits, {});
  Choice& choice = client.choices[static_cast<size_t>(sequence.choice)];
  const bool is_stop_token = std::ranges::find(sequence.given->stop_token_ids, token) !=
                             sequence.given->stop_token_ids.end();
  if (choice.text) event.text = choice.text->add(token, is_stop_token);

  const std::optional<FinishReason> reason = finish_reason(sequence, choice, is_stop_token, event);
  if (reason) {
    end_choice(sequence.request_id, sequence.choice, *reason, std::move(event));
  } else {
    post(client, std::move(event));
  }
  return reason.has_value();
}

// Whether the newest token ends the choice; sets what stopped it.
std::optional<FinishReason> ClientBook::finish_reason(const Sequence& sequence,
                                                      const Choice& choice, bool is_stop_token,
                                                      Event& event) const {
  const SamplingParams& sampling = sequence.sampling();
  const int32_t token = sequence.answer.back();
  if (is_stop_token) {
    const bool by_model =
        !sampling.ignore_eos && std::ranges::find(model_stops_, token) != model_stops_.end();
    if (!by_model) event.stop_reason = token;
    return FinishReason::kStop;
  }
  if (choice.text && choice.text->stop_string()) {
    event.stop_reason = sampling.stop[*choice.text->stop_string()];
    return FinishReason::kStop;
  }
  if (sequence.num_generated() >= sampling.max_tokens) return FinishReason::kLength;
  return std::nullopt;
}

void ClientBook::end_choice(uint64_t request_id, int choice, FinishReason reason, Event event) {
  Client& client = clients_.at(request_id);
  Choice& ended = client.choices[static_cast<size_t>(choice)];
  if (ended.text && !ended.text->stop_string()) event.text += ended.text->finish();
  event.choice = choice;
  event.finish_reason = reason;
  event.last = client.num_running == 1;
  if (event.last) {
    count_prompt(client);
    client.usage.total_ms = milliseconds_since(client.submitted);
    event.usage = std::move(client.usage);
  }
  post(client, std::move(event));
  ended.ended = true;
  if (--client.num_running == 0) clients_.erase(request_id);
}

void ClientBook::post(const Client& client, Event event) {
  event.at_ms = milliseconds_since(client.submitted);
  outbox_.emplace_back(client.stream, std::move(event));
}

bool ClientBook::send() noexcept {
  bool all_served = true;
  for (auto& [stream, event] : outbox_) {
    if (!stream->push(std::move(event))) all_served = false;
  }
  outbox_.clear();
  return all_served;
}

std::optional<uint64_t> ClientBook::find_failed() const {
  const auto failed = std::ranges::find_if(
      clients_, [](const auto& client) { return client.second.stream->has_failed(); });
  return failed == clients_.end() ? std::nullopt : std::optional(failed->first);
}

size_t ClientBook::break_off(uint64_t request_id) noexcept {
  const auto client = clients_.find(request_id);
  if (client == clients_.end()) return 0;
  const size_t num_choices = client->second.choices.size();
  client->second.stream->break_off();
  clients_.erase(client);
  return num_choices;
}

}  // namespace anyslot::internal
