#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <queue>
#include <utility>

namespace anyslot::server {

/// Lets a few through at a time; the others wait in the order in which they came. Any thread.
class Gate {
 public:
  /// Being inside, until it is let go.
  using Pass = std::shared_ptr<void>;
  using Start = std::function<void(Pass)>;

  explicit Gate(size_t limit) : state_(std::make_shared<State>(limit)) {}

  /// `start` is called once there is room, now or on the thread of the one who leaves. When it
  /// throws it has left; what a later one throws is lost with it.
  void enter(Start start) {
    {
      const std::lock_guard lock(state_->mutex);
      if (state_->inside == state_->limit) return state_->waiting.push(std::move(start));
      ++state_->inside;
    }
    begin(state_, start);
  }

 private:
  struct State {
    explicit State(size_t most) : limit(most) {}
    const size_t limit;
    std::mutex mutex;
    size_t inside = 0;
    std::queue<Start> waiting;
  };

  static void begin(const std::shared_ptr<State>& state, const Start& start) {
    start(Pass(state.get(), [state](void*) { leave(state); }));
  }
  static void leave(const std::shared_ptr<State>& state) noexcept {
    Start next;
    {
      const std::lock_guard lock(state->mutex);
      --state->inside;
      if (state->waiting.empty()) return;
      next = std::move(state->waiting.front());
      state->waiting.pop();
      ++state->inside;
    }
    try {
      begin(state, next);
    } catch (const std::exception&) {  // it has left again
    }
  }

  std::shared_ptr<State> state_;
};

}  // namespace anyslot::server
