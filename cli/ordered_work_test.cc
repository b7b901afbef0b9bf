#include "ordered_work.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <latch>
#include <numeric>
#include <system_error>
#include <vector>

namespace anyslot::cli {
namespace {

using testing::HasSubstr;

TEST(RunInOrder, IsDoneInOrderWhateverEndsFirst) {
  std::latch later_done(3);  // the first one ends last
  std::vector<int> squares(4, -1);
  std::vector<size_t> order;
  const Status status = run_in_order(
      4, 4,
      [&](size_t i, const std::atomic<bool>&) {
        if (i == 0) later_done.wait();
        squares[i] = static_cast<int>(i * i);
        if (i > 0) later_done.count_down();
      },
      [&](size_t i) {
        EXPECT_EQ(squares[i], i * i);
        order.push_back(i);
        return Status();
      });
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_THAT(order, testing::ElementsAre(0, 1, 2, 3));
}

TEST(RunInOrder, StopsAtTheFirstFailure) {
  std::atomic<size_t> num_begun = 0;
  const Status status = run_in_order(
      1000, 2,
      [&](size_t i, const std::atomic<bool>& stopped) {
        ++num_begun;
        if (i > 3) stopped.wait(false);
      },
      [&](size_t i) { return i < 3 ? Status() : internal_error("three is too many"); });
  EXPECT_EQ(status.message(), "three is too many");
  EXPECT_LE(num_begun, 6);
}

TEST(RunInOrder, NamesTheCureWhenThreadsRunOut) {
  std::atomic<size_t> num_begun = 0;
  size_t num_started = 0;
  const Status status = run_in_order(
      1000, 8,
      [&](size_t, const std::atomic<bool>& stopped) {
        ++num_begun;
        stopped.wait(false);
      },
      [&](size_t) { return Status(); },
      [&](const std::function<void()>& body) {
        if (num_started == 3) throw std::system_error(EAGAIN, std::generic_category());
        ++num_started;
        return std::jthread(body);
      });
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr("no more than 3 of 8 threads"));
  EXPECT_THAT(status.message(), HasSubstr("lower --concurrency"));
  EXPECT_LE(num_begun, 3);
}

TEST(RunInOrder, TakesMoreThreadsThanWork) {
  size_t num_started = 0;
  const Status status = run_in_order(
      2, 1000, [](size_t, const std::atomic<bool>&) {}, [](size_t) { return Status(); },
      [&](const std::function<void()>& body) {
        ++num_started;
        return std::jthread(body);
      });
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(num_started, 2);
}

}  // namespace
}  // namespace anyslot::cli
