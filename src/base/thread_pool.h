#pragma once

#include <cstdint>
#include <memory>

#include "base/function_ref.h"

namespace anyslot {

/// A fixed team of threads, the caller being worker 0. One caller at a time. It never waits for a
/// thread that has not begun a task, so that a busy machine, which keeps threads from running,
/// costs the help of these threads only.
class ThreadPool {
 public:
  /// Throws std::system_error when the system gives too few threads.
  explicit ThreadPool(int num_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const { return num_threads_; }

  /// Runs task(i, worker) for every i in [0, num_tasks), below 2^31, tasks taken in order by
  /// whichever worker is free; returns when all are done. Wakes no more threads than there are
  /// tasks for.
  void parallel_for(int64_t num_tasks, FunctionRef<void(int64_t task, int worker)> task);

  /// Wakes the workers. From here to end_step they wait busily for the next parallel_for, so that a
  /// step wakes them once; but not for longer than a few hundred microseconds, and not while others
  /// want their cores.
  void begin_step();
  void end_step();

 private:
  struct Impl;
  int num_threads_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace anyslot
