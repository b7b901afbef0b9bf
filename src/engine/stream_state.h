#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "anyslot/request.h"
#include "anyslot/result.h"
#include "engine/answer_text.h"
#include "engine/command_queue.h"
#include "text/tokenizer.h"

namespace anyslot::internal {

/// What the engine thread and the reader of one stream share. The reader's thread turns token ids
/// into text, unless the request has stop strings: the engine thread must know the text then, and
/// its events bring it.
struct StreamState {
  /// `tokenizer`: null for a model without one.
  StreamState(uint64_t request_id, std::shared_ptr<CommandQueue> engine_commands,
              const std::shared_ptr<const Tokenizer>& tokenizer, const SamplingParams& sampling);

  /// Engine thread. False when the reader cannot be served: memory did not suffice, after which it
  /// gets no more than an error, or the function of on_ready threw. The request is to end then.
  [[nodiscard]] bool push(Event event) noexcept;
  /// Ends the reader's events with that error. Takes no memory.
  void break_off() noexcept;
  /// Whether a push was in vain. Engine thread.
  bool has_failed() const { return has_failed_; }

  /// Reader's thread; see Stream.
  Event next();
  std::optional<Event> try_next();
  void on_ready(std::function<void()> ready);
  void cancel();
  /// No more calls of on_ready's function; cancels unless the last event has been read.
  void abandon();

  const uint64_t id;
  const std::shared_ptr<CommandQueue> commands;

 private:
  bool has_taken() const { return num_read_ < taken_.size(); }
  bool has_event() const { return has_taken() || !events_.empty() || is_broken_; }
  bool call_reader() noexcept;
  bool take_events();
  Event read_event();
  Event read_breakage();
  void decode_text(Event& event);

  std::mutex mutex_;
  std::condition_variable ready_;
  std::vector<Event> events_;
  std::function<void()> on_event_;  // called with the lock held, so that it ends with its stream
  bool reader_waits_ = false;       // for on_event_
  bool is_broken_ = false;          // events were lost

  bool has_failed_ = false;        // for the engine's thread
  std::vector<Event> taken_;       // by the reader
  size_t num_read_ = 0;            // of them
  std::vector<AnswerText> texts_;  // of each choice; none if there is nothing to make here
  std::optional<Event> last_;
};

}  // namespace anyslot::internal
