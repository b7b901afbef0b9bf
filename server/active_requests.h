#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>

namespace anyslot::server {

/// The requests that are with the engine or on their way to it. I/O thread only.
class ActiveRequests {
 public:
  explicit ActiveRequests(size_t limit) : limit_(limit) {}

  bool full() const { return cancels_.size() >= limit_; }
  size_t size() const { return cancels_.size(); }
  size_t limit() const { return limit_; }

  /// `cancel` ends the request soon; it is called by cancel_all().
  uint64_t enter(std::function<void()> cancel) {
    cancels_.emplace(next_id_, std::move(cancel));
    return next_id_++;
  }
  void leave(uint64_t id) { cancels_.erase(id); }
  void cancel_all() {
    const auto cancels = cancels_;  // a request may leave at once
    for (const auto& [id, cancel] : cancels) cancel();
  }

 private:
  size_t limit_;
  uint64_t next_id_ = 1;
  std::map<uint64_t, std::function<void()>> cancels_;
};

}  // namespace anyslot::server
