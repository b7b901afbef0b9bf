#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>

#include "anyslot/result.h"
#include "engine/command_queue.h"
#include "text/detokenizer.h"
#include "text/tokenizer.h"

namespace anyslot::internal {

/// What the engine thread and the reader of one stream share. The engine thread pushes events
/// without text; the reader's thread turns token ids into text.
struct StreamState {
  StreamState(uint64_t request_id, std::shared_ptr<CommandQueue> engine_commands,
              std::shared_ptr<const Tokenizer> tokenizer);

  /// Engine thread.
  void push(Event event);

  /// Reader's thread.
  Event next();
  void cancel();
  /// Cancels unless the last event has been read.
  void abandon();

  const uint64_t id;
  const std::shared_ptr<CommandQueue> commands;

 private:
  void decode_text(Event& event);

  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<Event> events_;

  std::shared_ptr<const Tokenizer> tokenizer_;       // a stream may outlive its engine
  std::optional<StreamingDetokenizer> detokenizer_;  // none without a tokenizer
  std::optional<Event> last_;
};

}  // namespace anyslot::internal
