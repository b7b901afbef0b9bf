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

std::vector<Command> CommandQueue::take(bool wait) {
  if (!wait && !has_commands_) return {};
  std::unique_lock lock(mutex_);
  if (wait) ready_.wait(lock, [this] { return closed_ || !commands_.empty(); });
  has_commands_ = false;
  return std::exchange(commands_, {});
}

}  // namespace anyslot::internal
