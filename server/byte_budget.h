#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

namespace anyslot::server {

/// Bytes that many may hold together. Any thread.
class ByteBudget {
 public:
  /// What one of them holds, until it is let go.
  class Charge {
   public:
    Charge() = default;
    Charge(Charge&& other) noexcept
        : held_(std::move(other.held_)), bytes_(std::exchange(other.bytes_, 0)) {}
    Charge& operator=(Charge&& other) noexcept {
      if (this == &other) return *this;
      release();
      held_ = std::move(other.held_);
      bytes_ = std::exchange(other.bytes_, 0);
      return *this;
    }
    ~Charge() { release(); }

    void release() {
      if (held_ != nullptr) held_->fetch_sub(bytes_);
      held_ = nullptr;
      bytes_ = 0;
    }

   private:
    friend class ByteBudget;
    std::shared_ptr<std::atomic<size_t>> held_;
    size_t bytes_ = 0;
  };

  explicit ByteBudget(size_t limit) : limit_(limit) {}

  /// Makes `charge` hold `bytes`, not less than before. False, and nothing is changed, when that is
  /// more than the budget has.
  bool grow(Charge& charge, size_t bytes) const {
    const size_t more = bytes - charge.bytes_;
    if (held_->fetch_add(more) + more > limit_) {
      held_->fetch_sub(more);
      return false;
    }
    charge.held_ = held_;
    charge.bytes_ = bytes;
    return true;
  }
  size_t limit() const { return limit_; }
  size_t held() const { return *held_; }

 private:
  size_t limit_;
  std::shared_ptr<std::atomic<size_t>> held_ = std::make_shared<std::atomic<size_t>>(0);
};

}  // namespace anyslot::server
