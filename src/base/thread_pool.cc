#include "base/thread_pool.h"

#include <sched.h>

#include <atomic>
#include <condition_variable>
#include <fstream>
#include <mutex>
#include <set>
#include <string>
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

/// One turn of a waiting loop: pauses for some microseconds, then lets others run, since on a busy
/// machine the thread that is waited for may need this very core.
class Spinner {
 public:
  void wait() {
    if (++turns_ < kTurnsBeforeYield) {
      cpu_relax();
    } else {
      std::this_thread::yield();
    }
  }

 private:
  static constexpr int kTurnsBeforeYield = 2000;
  int turns_ = 0;
};

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
    {
      const std::lock_guard lock(mutex);
      stopping.store(true);
      generation.fetch_add(1);
    }
    wake.notify_all();
    for (std::thread& thread : threads) thread.join();
  }

  void run_tasks(int worker) {
    for (;;) {
      const int64_t i = next_task.fetch_add(1, std::memory_order_relaxed);
      if (i >= num_tasks) return;
      (*task)(i, worker);
    }
  }

  // Returns the first generation that differs from `seen`.
  uint64_t await_work(uint64_t seen) {
    Spinner spinner;
    for (;;) {
      const uint64_t now = generation.load(std::memory_order_acquire);
      if (now != seen) return now;
      if (spinning.load(std::memory_order_relaxed)) {
        spinner.wait();
        continue;
      }
      std::unique_lock lock(mutex);
      wake.wait(lock, [&] { return generation.load() != seen || spinning.load(); });
    }
  }

  void worker_loop(int worker) {
    uint64_t seen = 0;
    for (;;) {
      seen = await_work(seen);
      if (stopping.load()) return;
      run_tasks(worker);
      pending.fetch_sub(1, std::memory_order_release);
    }
  }

  std::vector<std::thread> threads;
  std::mutex mutex;
  std::condition_variable wake;
  std::atomic<bool> spinning{false};
  std::atomic<bool> stopping{false};
  std::atomic<uint64_t> generation{0};
  std::atomic<int64_t> next_task{0};
  std::atomic<int> pending{0};
  int64_t num_tasks = 0;
  const Task* task = nullptr;
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
  impl_->task = &task;
  impl_->num_tasks = num_tasks;
  impl_->next_task.store(0, std::memory_order_relaxed);
  impl_->pending.store(num_threads_ - 1, std::memory_order_relaxed);
  if (impl_->spinning.load(std::memory_order_relaxed)) {
    impl_->generation.fetch_add(1, std::memory_order_release);
  } else {
    {
      const std::lock_guard lock(impl_->mutex);
      impl_->generation.fetch_add(1, std::memory_order_release);
    }
    impl_->wake.notify_all();
  }
  impl_->run_tasks(0);
  // Every worker passes through each generation, so none can still read `task` once pending is 0.
  Spinner spinner;
  while (impl_->pending.load(std::memory_order_acquire) != 0) spinner.wait();
}

void ThreadPool::begin_step() {
  if (num_threads_ == 1) return;
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->spinning.store(true);
  }
  impl_->wake.notify_all();
}

void ThreadPool::end_step() { impl_->spinning.store(false); }

int num_physical_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 1;
  std::set<std::string> cores;  // one sibling list per physical core
  int num_cpus = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    ++num_cpus;
    std::ifstream file("/sys/devices/system/cpu/cpu" + std::to_string(cpu) +
                       "/topology/thread_siblings_list");
    std::string siblings;
    if (std::getline(file, siblings)) cores.insert(siblings);
  }
  return cores.empty() ? (num_cpus > 0 ? num_cpus : 1) : static_cast<int>(cores.size());
}

}  // namespace anyslot
