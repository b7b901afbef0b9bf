#include "base/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <system_error>
#include <thread>
#include <vector>

namespace anyslot {

namespace {

void cpu_relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Busy waiting, for a while: pauses for some microseconds; then lets others run in between, since
/// on a busy machine the thread that is waited for may need this very core. Others run for
/// milliseconds at a time, so the first of them ends the wait.
class Spinner {
 public:
  /// False when it is time to sleep.
  bool wait() {
    if (turns_ < kTurnsBeforeYield) {
      ++turns_;
      cpu_relax();
      return true;
    }
    if (turns_++ == kTurnsBeforeYield) began_yielding_ = Clock::now();
    std::this_thread::yield();
    return Clock::now() - began_yielding_ < kLongest;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr int kTurnsBeforeYield = 2000;
  static constexpr std::chrono::microseconds kLongest{500};

  int turns_ = 0;
  Clock::time_point began_yielding_;
};

/// The tasks that nobody has taken, in the lower half, and the number of the loop they belong to,
/// so that no worker takes a task of another loop than it believes.
constexpr uint64_t kOneLoop = uint64_t{1} << 32;
int64_t tasks_left(uint64_t open) { return static_cast<int64_t>(open % kOneLoop); }

}  // namespace

struct ThreadPool::Impl {
  using Task = FunctionRef<void(int64_t, int)>;

  explicit Impl(int num_threads) {
    try {
      for (int worker = 1; worker < num_threads; ++worker) {
        threads.emplace_back([this, worker] { worker_loop(worker); });
      }
    } catch (const std::system_error&) {
      stop();
      throw;
    }
  }

  ~Impl() { stop(); }

  void stop() {
    stopping.store(true);
    news.fetch_add(1);
    news.notify_all();
    for (std::thread& thread : threads) thread.join();
  }

  void open_loop(int64_t count, const Task& with) {
    task = &with;
    num_tasks = count;
    unfinished.store(static_cast<int32_t>(count), std::memory_order_relaxed);
    const uint64_t last = open.load(std::memory_order_relaxed) / kOneLoop;
    open.store((last + 1) * kOneLoop + static_cast<uint64_t>(count), std::memory_order_release);
    news.fetch_add(1, std::memory_order_release);
    const auto helpers = std::min<int64_t>(count - 1, static_cast<int64_t>(threads.size()));
    for (int64_t i = 0; i < helpers; ++i) news.notify_one();
  }

  /// Takes tasks while there are any. `task` and `num_tasks` stand still for whoever has taken one.
  void run_tasks(int worker) {
    int32_t finished = 0;
    uint64_t seen = open.load(std::memory_order_acquire);
    while (tasks_left(seen) > 0) {
      if (!open.compare_exchange_weak(seen, seen - 1, std::memory_order_acq_rel,
                                      std::memory_order_acquire)) {
        continue;
      }
      (*task)(num_tasks - tasks_left(seen), worker);
      ++finished;
      seen = open.load(std::memory_order_acquire);
    }
    if (finished == 0) return;
    if (unfinished.fetch_sub(finished, std::memory_order_acq_rel) == finished) {
      unfinished.notify_one();
    }
  }

  void await_end_of_loop() {
    Spinner spinner;
    for (;;) {
      const int32_t left = unfinished.load(std::memory_order_acquire);
      if (left == 0) return;
      if (!spinner.wait()) unfinished.wait(left, std::memory_order_acquire);
    }
  }

  void await_news(uint32_t seen) {
    Spinner spinner;
    while (news.load(std::memory_order_acquire) == seen) {
      // Between two steps the cores are for the threads that read the answers.
      if (!in_step.load(std::memory_order_relaxed) || !spinner.wait()) {
        news.wait(seen, std::memory_order_acquire);
      }
    }
  }

  void worker_loop(int worker) {
    for (;;) {
      const uint32_t seen = news.load(std::memory_order_acquire);  // before looking, to miss none
      if (stopping.load()) return;
      run_tasks(worker);
      await_news(seen);
    }
  }

  std::vector<std::thread> threads;
  std::atomic<bool> stopping{false};
  std::atomic<bool> in_step{false};
  std::atomic<uint32_t> news{0};  // changes when a worker should look around
  std::atomic<uint64_t> open{0};
  std::atomic<int32_t> unfinished{0};  // tasks of the loop at hand
  const Task* task = nullptr;
  int64_t num_tasks = 0;
};

ThreadPool::ThreadPool(int num_threads)
    : num_threads_(num_threads < 1 ? 1 : num_threads),
      impl_(std::make_unique<Impl>(num_threads_)) {}

ThreadPool::~ThreadPool() = default;

void ThreadPool::parallel_for(int64_t num_tasks, FunctionRef<void(int64_t, int)> task) {
  if (num_tasks <= 1 || num_threads_ == 1) {
    for (int64_t i = 0; i < num_tasks; ++i) task(i, 0);
    return;
  }
  impl_->open_loop(num_tasks, task);
  impl_->run_tasks(0);
  impl_->await_end_of_loop();
}

void ThreadPool::begin_step() {
  if (num_threads_ == 1) return;
  impl_->in_step.store(true);
  impl_->news.fetch_add(1, std::memory_order_release);
  impl_->news.notify_all();
}

void ThreadPool::end_step() { impl_->in_step.store(false); }

}  // namespace anyslot
