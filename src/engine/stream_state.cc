#include "engine/stream_state.h"

#include <span>
#include <utility>

namespace anyslot::internal {

StreamState::StreamState(uint64_t request_id, std::shared_ptr<CommandQueue> engine_commands,
                         std::shared_ptr<const Tokenizer> tokenizer)
    : id(request_id), commands(std::move(engine_commands)), tokenizer_(std::move(tokenizer)) {
  if (tokenizer_ != nullptr) detokenizer_.emplace(*tokenizer_);
}

void StreamState::push(Event event) {
  {
    const std::lock_guard lock(mutex_);
    events_.push_back(std::move(event));
  }
  ready_.notify_one();
}

void StreamState::decode_text(Event& event) {
  if (!detokenizer_) return;
  const bool stopped = event.finish_reason == FinishReason::kStop;  // the stop token is not shown
  const std::span<const int32_t> tokens(event.token_ids);
  for (const int32_t token : tokens.first(tokens.size() - (stopped ? 1 : 0))) {
    event.text += detokenizer_->push(token);
  }
  if (event.finish_reason) event.text += detokenizer_->flush();
}

Event StreamState::next() {
  if (last_) return *last_;
  Event event;
  {
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [this] { return !events_.empty(); });
    event = std::move(events_.front());
    events_.pop_front();
  }
  decode_text(event);
  if (event.finish_reason) {
    last_ = event;
    last_->token_ids.clear();
    last_->text.clear();
    last_->prompt_logits.clear();
  }
  return event;
}

void StreamState::abandon() {
  if (!last_) cancel();
}

void StreamState::cancel() { commands->push(CancelCommand{id}); }

}  // namespace anyslot::internal
