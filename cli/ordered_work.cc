#include "ordered_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <system_error>
#include <vector>

namespace anyslot::cli {
namespace {

/// Hands indices to workers and tells one reader what is done.
class Progress {
 public:
  explicit Progress(size_t size) : finished_(size, false) {}

  /// The next index to work on; none when all are taken or the reader stopped.
  std::optional<size_t> take() {
    const size_t index = next_++;
    if (stopped_ || index >= finished_.size()) return std::nullopt;
    return index;
  }
  void finish(size_t index) {
    const std::lock_guard lock(mutex_);
    finished_[index] = true;
    changed_.notify_one();
  }
  void wait(size_t index) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return finished_[index]; });
  }
  void stop() {
    stopped_ = true;
    stopped_.notify_all();
  }
  const std::atomic<bool>& stopped() const { return stopped_; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<bool> finished_;
  std::atomic<size_t> next_ = 0;
  std::atomic<bool> stopped_ = false;
};

/// The workers of one call. They are told to stop and waited for however the call ends.
class Workers {
 public:
  explicit Workers(Progress& progress) : progress_(&progress) {}
  ~Workers() {
    progress_->stop();
    threads_.clear();
  }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  Status start(size_t count, const std::function<void()>& body, const StartThread& start_one) {
    threads_.reserve(count);
    try {
      while (threads_.size() < count) threads_.push_back(start_one(body));
    } catch (const std::system_error& error) {
      return resource_exhausted(
          fmt::format("the system gives no more than {} of {} threads ({}); lower "
                      "--concurrency",
                      threads_.size(), count, error.what()));
    }
    return {};
  }

 private:
  Progress* progress_;
  std::vector<std::jthread> threads_;
};

}  // namespace

std::jthread start_thread(const std::function<void()>& body) { return std::jthread(body); }

Status run_in_order(size_t size, int concurrency,
                    const std::function<void(size_t, const std::atomic<bool>& stopped)>& work,
                    const std::function<Status(size_t)>& done, const StartThread& start) {
  Progress progress(size);
  Workers workers(progress);
  const auto body = [&] {
    while (const std::optional<size_t> index = progress.take()) {
      work(*index, progress.stopped());
      progress.finish(*index);
    }
  };
  Status status = workers.start(std::min(static_cast<size_t>(concurrency), size), body, start);
  for (size_t i = 0; i < size && status.ok(); ++i) {
    progress.wait(i);
    status = done(i);
  }
  return status;
}

}  // namespace anyslot::cli
