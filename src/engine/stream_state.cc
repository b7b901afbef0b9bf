#include "engine/stream_state.h"

#include <utility>

namespace anyslot::internal {

StreamState::StreamState(uint64_t request_id, std::shared_ptr<CommandQueue> engine_commands,
                         const std::shared_ptr<const Tokenizer>& tokenizer,
                         const SamplingParams& sampling)
    : id(request_id), commands(std::move(engine_commands)) {
  if (tokenizer == nullptr || !sampling.stop.empty()) return;
  texts_.assign(static_cast<size_t>(sampling.n), AnswerText(tokenizer, sampling, nullptr));
}

void StreamState::push(Event event) {
  {
    const std::lock_guard lock(mutex_);
    events_.push_back(std::move(event));
    if (std::exchange(reader_waits_, false)) on_event_();
  }
  ready_.notify_one();
}

void StreamState::decode_text(Event& event) {
  if (texts_.empty()) return;
  AnswerText& text = texts_[static_cast<size_t>(event.choice)];
  for (size_t i = 0; i < event.token_ids.size(); ++i) {
    const bool is_stop_token =
        event.finish_reason == FinishReason::kStop && i + 1 == event.token_ids.size();
    event.text += text.add(event.token_ids[i], is_stop_token);
  }
  if (event.finish_reason) event.text += text.finish();
}

// With the lock held.
void StreamState::take_events() {
  taken_.clear();
  num_read_ = 0;
  std::swap(taken_, events_);  // both keep their memory
}

Event StreamState::read_event() {
  Event event = std::move(taken_[num_read_++]);
  decode_text(event);
  if (event.last) {
    last_ = event;
    last_->token_ids.clear();
    last_->text.clear();
    last_->logprobs.clear();
    last_->prompt_logits.clear();
  }
  return event;
}

Event StreamState::next() {
  if (last_) return *last_;
  if (!has_taken()) {
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [this] { return !events_.empty(); });
    take_events();
  }
  return read_event();
}

std::optional<Event> StreamState::try_next() {
  if (last_) return std::nullopt;
  if (!has_taken()) {
    const std::lock_guard lock(mutex_);
    if (events_.empty()) {
      reader_waits_ = on_event_ != nullptr;
      return std::nullopt;
    }
    take_events();
  }
  return read_event();
}

void StreamState::on_ready(std::function<void()> ready) {
  const std::lock_guard lock(mutex_);
  std::swap(on_event_, ready);  // the old one goes after the lock: it may own the stream
  const bool has_event = has_taken() || !events_.empty();
  reader_waits_ = on_event_ != nullptr && !has_event && !last_;
  if (on_event_ != nullptr && has_event) on_event_();
}

void StreamState::abandon() {
  on_ready(nullptr);
  if (!last_) cancel();
}

void StreamState::cancel() { commands->push(CancelCommand{id}); }

}  // namespace anyslot::internal
