#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "anyslot/result.h"
#include "engine/answer_text.h"
#include "engine/command_queue.h"
#include "engine/stream_state.h"
#include "sched/sequence.h"

namespace anyslot::internal {

/// Those who wait for answers: how far each choice is, what it used, and the events that have not
/// been sent yet. Knows neither the scheduler nor the model. Engine thread only.
class ClientBook {
 public:
  /// `totals`: counts prompts and generated tokens there. `model_stops`: the model's own stop
  /// tokens.
  ClientBook(Stats& totals, std::span<const int32_t> model_stops)
      : totals_(totals), model_stops_(model_stops) {}

  /// Enters the request of a command, and takes its stream and texts.
  void add(SubmitCommand& command);
  bool empty() const { return clients_.empty(); }
  bool contains(uint64_t request_id) const { return clients_.contains(request_id); }
  /// Any of them; not when empty.
  uint64_t any() const { return clients_.begin()->first; }
  /// The lowest choice of a request that has not ended.
  int next_choice(uint64_t request_id) const;

  /// A sequence of the request was admitted for the first time.
  void start(Sequence& sequence) const;
  /// The prompt's usage is that of choice 0, known once it was admitted.
  void take_usage(const Sequence& sequence);
  /// Logits of consecutive rows, the first of which follows `position`, for the next event. What
  /// was kept before stays, since a preempted request computes its prompt again.
  void keep_prompt_logits(const Sequence& sequence, int64_t position, std::span<const float> row);
  /// Sends the sequence's newest token in `event`. True when that was the last of its choice, which
  /// has ended then.
  bool add_token(const Sequence& sequence, Event event);
  void end_choice(uint64_t request_id, int choice, FinishReason reason, Event event);

  /// Gives the streams what has come for them. False when one of those could not be served: it has
  /// failed, and its request is to end.
  [[nodiscard]] bool send() noexcept;
  /// A request whose stream has failed.
  std::optional<uint64_t> find_failed() const;
  /// Forgets a request, without an event; its stream breaks off. Takes no memory. Returns how many
  /// choices it had; 0 when it is unknown.
  size_t break_off(uint64_t request_id) noexcept;
  size_t num_unsent() const { return outbox_.size(); }

 private:
  struct Choice {
    bool ended = false;
    std::optional<AnswerText> text;  // when stop strings must be found in it
  };
  struct Client {
    std::shared_ptr<StreamState> stream;
    Clock::time_point submitted;
    std::vector<Choice> choices;
    size_t num_running = 0;  // of them
    bool has_first_token = false;
    bool prompt_counted = false;
    Usage usage;
    std::vector<float> prompt_logits;
    int64_t prompt_logits_end = 0;  // position after the last token whose logits were kept
  };

  void take_usage(Client& client, const Sequence& sequence);
  void count_token(Client& client, const Sequence& sequence);
  void count_prompt(Client& client);
  std::optional<FinishReason> finish_reason(const Sequence& sequence, const Choice& choice,
                                            bool is_stop_token, Event& event) const;
  void post(const Client& client, Event event);

  Stats& totals_;
  std::span<const int32_t> model_stops_;
  std::unordered_map<uint64_t, Client> clients_;  // by request id
  std::vector<std::pair<std::shared_ptr<StreamState>, Event>> outbox_;
};

}  // namespace anyslot::internal
