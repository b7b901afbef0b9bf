#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <variant>
#include <vector>

#include "anyslot/engine.h"
#include "engine/answer_text.h"
#include "sched/sequence.h"

namespace anyslot::internal {

struct StreamState;
using Clock = std::chrono::steady_clock;

struct SubmitCommand {
  std::vector<std::unique_ptr<Sequence>> choices;  // of one request; their ids are consecutive
  std::vector<AnswerText> texts;  // of each choice; none unless it must be known to end the answer
  std::shared_ptr<StreamState> stream;
  Clock::time_point submitted;
  std::shared_ptr<GivenRequest> fit = {};  // theirs, if its max_tokens is to be cut to what fits
};
/// Encodes a document ahead of its use.
struct RegisterCommand {
  std::unique_ptr<Sequence> document;
  std::function<void(Expected<CachedDocument>)> done;
};
/// Of a request, or of a document that is encoded ahead.
struct CancelCommand {
  uint64_t request_id = 0;
};
/// Runs between two steps on the engine thread.
struct CallCommand {
  std::function<void()> call;  // must not throw
  std::function<void()> done;  // when the statistics show its effect
};
using Command = std::variant<SubmitCommand, RegisterCommand, CancelCommand, CallCommand>;

/// The only way to the engine thread. Closing it ends the thread; what is pushed later is dropped.
class CommandQueue {
 public:
  /// False when closed; the command is as it was then.
  bool push(Command&& command);
  void close();
  bool closed() const;

  /// Everything that has come. Takes no lock when nothing has.
  std::vector<Command> take();
  /// Waits until something has come, or the queue is closed, or for so long; unset: without limit.
  void wait(std::optional<std::chrono::milliseconds> at_most);

 private:
  mutable std::mutex mutex_;
  std::condition_variable ready_;
  std::vector<Command> commands_;
  std::atomic<bool> has_commands_ = false;  // so that a step in which none came takes no lock
  std::atomic<bool> closed_ = false;
};

}  // namespace anyslot::internal
