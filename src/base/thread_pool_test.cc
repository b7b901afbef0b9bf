#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
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

TEST(ThreadPool, LateThreadsTakeTasksOfTheLoopAtHandOnly) {
  // The fourth thread has nothing to do in the first loop, and may come late to any of the others.
  ThreadPool pool(4);
  for (int round = 0; round < 200; ++round) {
    std::atomic<int> inside{0};
    pool.begin_step();
    pool.parallel_for(3, [&](int64_t, int) {
      ++inside;
      while (inside.load() < 3) std::this_thread::yield();
    });
    EXPECT_EQ(inside.load(), 3);
    for (const int64_t tasks : {2, 5, 1, 7}) expect_each_task_once(pool, tasks);
    pool.end_step();
  }
}

TEST(ThreadPool, WakesThreadsThatFellAsleepWithinAStep) {
  ThreadPool pool(3);
  pool.begin_step();
  for (int round = 0; round < 5; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(3)) {
    }
    // Only when all three take part can any of them leave.
    std::atomic<int> inside{0};
    pool.parallel_for(3, [&](int64_t, int) {
      ++inside;
      while (inside.load() < 3) std::this_thread::yield();
    });
  }
  pool.end_step();
}

TEST(ThreadPool, WaitsForATaskThatTakesLong) {
  ThreadPool pool(2);
  std::atomic<int> done{0};
  std::atomic<int> inside{0};
  pool.parallel_for(2, [&](int64_t, int worker) {
    ++inside;
    while (inside.load() < 2) std::this_thread::yield();  // each thread takes one
    const auto begin = std::chrono::steady_clock::now();
    const std::chrono::milliseconds length(worker == 0 ? 0 : 20);
    while (std::chrono::steady_clock::now() - begin < length) std::this_thread::yield();
    ++done;
  });
  EXPECT_EQ(done.load(), 2);
}

TEST(ThreadPool, EndsWhileItsThreadsWait) {
  for (int round = 0; round < 300; ++round) {
    ThreadPool pool(4);
    if (round % 3 != 0) pool.begin_step();
    if (round % 3 == 1) pool.parallel_for(3, [](int64_t, int) {});
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
