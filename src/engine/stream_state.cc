#include "engine/stream_state.h"

#include <new>
#include <utility>

namespace anyslot::internal {

StreamState::StreamState(uint64_t request_id, std::shared_ptr<CommandQueue> engine_commands,
                         const std::shared_ptr<const Tokenizer>& tokenizer,
                         const SamplingParams& sampling)
    : id(request_id), commands(std::move(engine_commands)) {
  if (tokenizer == nullptr || !sampling.stop.empty()) return;
  texts_.assign(static_cast<size_t>(sampling.n), AnswerText(tokenizer, sampling, nullptr));
}

// With the lock held. A function that throws is called again for the next event, lest the reader
// never learn of the end.
bool StreamState::call_reader() noexcept {
  if (!reader_waits_) return true;
  try {
    on_event_();
  } catch (...) {
    return false;
  }
  reader_waits_ = false;
  return true;
}

bool StreamState::push(Event event) noexcept {
  {
    const std::lock_guard lock(mutex_);
    try {
      if (!is_broken_) events_.push_back(std::move(event));
    } catch (const std::bad_alloc&) {
      is_broken_ = true;
    }
    const bool is_called = call_reader();
    has_failed_ = has_failed_ || is_broken_ || !is_called;
  }
  ready_.notify_one();
  return !has_failed_;
}

void StreamState::break_off() noexcept {
  {
    const std::lock_guard lock(mutex_);
    is_broken_ = true;
    static_cast<void>(call_reader());
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

// With the lock held. False when there are none, and none will come.
bool StreamState::take_events() {
  taken_.clear();
  num_read_ = 0;
  std::swap(taken_, events_);  // both keep their memory
  return has_taken();
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

Event StreamState::read_breakage() {
  Event event;
  event.finish_reason = FinishReason::kError;
  event.error_code = StatusCode::kResourceExhausted;
  event.error = "memory did not suffice to go on with the request";
  event.last = true;
  last_ = event;
  return event;
}

Event StreamState::next() {
  if (last_) return *last_;
  if (!has_taken()) {
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [this] { return has_event(); });
    if (!take_events()) return read_breakage();
  }
  return read_event();
}

std::optional<Event> StreamState::try_next() {
  if (last_) return std::nullopt;
  if (!has_taken()) {
    const std::lock_guard lock(mutex_);
    if (!has_event()) {
      reader_waits_ = on_event_ != nullptr;
      return std::nullopt;
    }
    if (!take_events()) return read_breakage();
  }
  return read_event();
}

void StreamState::on_ready(std::function<void()> ready) {
  const std::lock_guard lock(mutex_);
  std::swap(on_event_, ready);  // the old one goes after the lock: it may own the stream
  reader_waits_ = on_event_ != nullptr && !has_event() && !last_;
  if (on_event_ != nullptr && has_event() && !last_) on_event_();
}

void StreamState::abandon() {
  on_ready(nullptr);
  if (!last_) cancel();
}

void StreamState::cancel() { commands->push(CancelCommand{id}); }

}  // namespace anyslot::internal
