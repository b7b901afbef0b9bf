#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

namespace anyslot::server {

/// The requests that the server works on, from their header to the end of their answer. Any thread.
class ActiveRequests {
  struct State;

 public:
  /// One of the places, taken until it is let go.
  class Place {
   public:
    explicit Place(std::shared_ptr<State> state) : state_(std::move(state)) {
      const std::lock_guard lock(state_->mutex);
      state_->places.insert(this);
    }
    ~Place() {
      const std::lock_guard lock(state_->mutex);
      state_->places.erase(this);
    }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

    /// `cancel` ends the request soon; it is called by cancel_all().
    void on_cancel(std::function<void()> cancel) {
      const std::lock_guard lock(state_->mutex);
      cancel_ = std::move(cancel);
    }

   private:
    friend class ActiveRequests;
    std::shared_ptr<State> state_;
    std::function<void()> cancel_;
  };

  explicit ActiveRequests(size_t limit) : limit_(limit) {}

  /// None when all places are taken.
  std::shared_ptr<Place> enter() {
    if (full()) return nullptr;
    return std::make_shared<Place>(state_);
  }
  size_t size() const {
    const std::lock_guard lock(state_->mutex);
    return state_->places.size();
  }
  bool full() const { return size() >= limit_; }
  size_t limit() const { return limit_; }

  /// A request that cannot be cancelled for want of memory does not keep the others.
  void cancel_all() {
    for (const auto& cancel : cancels()) {
      try {
        if (cancel) cancel();
      } catch (const std::exception&) {
      }
    }
  }

 private:
  struct State {
    std::mutex mutex;
    std::set<Place*> places;
  };
  std::vector<std::function<void()>> cancels() const {
    std::vector<std::function<void()>> cancels;
    const std::lock_guard lock(state_->mutex);
    for (const Place* place : state_->places) cancels.push_back(place->cancel_);
    return cancels;
  }

  size_t limit_;
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace anyslot::server
