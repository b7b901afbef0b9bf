#include "engine/command_queue.h"

#include <utility>

namespace anyslot::internal {

bool CommandQueue::push(Command&& command) {
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return false;
    commands_.push_back(std::move(command));
    has_commands_ = true;
  }
  ready_.notify_one();
  return true;
}

void CommandQueue::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  ready_.notify_one();
}

bool CommandQueue::closed() const { return closed_; }

std::vector<Command> CommandQueue::take() {
  if (!has_commands_) return {};
  const std::lock_guard lock(mutex_);
  has_commands_ = false;
  return std::exchange(commands_, {});
}

void CommandQueue::wait(std::optional<std::chrono::milliseconds> at_most) {
  std::unique_lock lock(mutex_);
  const auto is_over = [this] { return closed_ || !commands_.empty(); };
  if (at_most) {
    ready_.wait_for(lock, *at_most, is_over);
  } else {
    ready_.wait(lock, is_over);
  }
}

}  // namespace anyslot::internal
