#pragma once

#include <cstddef>
#include <functional>
#include <queue>
#include <utility>

namespace anyslot::server {

/// Lets a few through at a time; the others wait in the order in which they came. I/O thread only.
class Gate {
 public:
  explicit Gate(size_t limit) : limit_(limit) {}

  /// `start` is called once there is room, perhaps now; leave() must follow when that has ended.
  void enter(std::function<void()> start) {
    if (inside_ == limit_) {
      waiting_.push(std::move(start));
      return;
    }
    ++inside_;
    start();
  }
  void leave() {
    --inside_;
    if (waiting_.empty()) return;
    const auto start = std::move(waiting_.front());
    waiting_.pop();
    ++inside_;
    start();
  }

 private:
  size_t limit_;
  size_t inside_ = 0;
  std::queue<std::function<void()>> waiting_;
};

}  // namespace anyslot::server
