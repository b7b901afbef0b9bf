#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

namespace anyslot {
namespace {

void expect_each_task_once(ThreadPool& pool, int64_t num_tasks) {
  std::vector<std::atomic<int>> runs(num_tasks);
  std::atomic<bool> bad_worker{false};
  pool.parallel_for(num_tasks, [&](int64_t task, int worker) {
    runs[task].fetch_add(1);
    if (worker < 0 || worker >= pool.num_threads()) bad_worker = true;
  });
  for (const auto& count : runs) EXPECT_EQ(count.load(), 1);
  EXPECT_FALSE(bad_worker);
}

TEST(ThreadPool, RunsEveryTaskOnceAsleepAndSpinning) {
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    for (int round = 0; round < 200; ++round) expect_each_task_once(pool, round % 9);
    for (int step = 0; step < 20; ++step) {
      pool.begin_step();
      for (int round = 0; round < 20; ++round) expect_each_task_once(pool, round);
      pool.end_step();
    }
  }
}

TEST(ThreadPool, ResultsAreVisibleToTheCaller) {
  ThreadPool pool(3);
  std::vector<int64_t> squares(1000);
  pool.parallel_for(1000, [&](int64_t task, int) { squares[task] = task * task; });
  for (int64_t i = 0; i < 1000; ++i) EXPECT_EQ(squares[i], i * i);
}

}  // namespace
}  // namespace anyslot
