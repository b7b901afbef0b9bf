#pragma once

#include <cstdint>
#include <memory>

#include "base/function_ref.h"

namespace anyslot {

/// A fixed team of threads, the caller being worker 0. One caller at a time.
class ThreadPool {
 public:
  /// Throws std::system_error when the system gives too few threads.
  explicit ThreadPool(int num_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const { return num_threads_; }

  /// Runs task(i, worker) for every i in [0, num_tasks), tasks taken in order by whichever worker
  /// is free; returns when all are done.
  void parallel_for(int64_t num_tasks, FunctionRef<void(int64_t task, int worker)> task);

  /// Between begin_step and end_step idle workers spin for the next parallel_for instead of
  /// sleeping, so that a step wakes them once.
  void begin_step();
  void end_step();

 private:
  struct Impl;
  int num_threads_;
  std::unique_ptr<Impl> impl_;
};

/// Physical cores that this process may run on.
int num_physical_cores();

}  // namespace anyslot
