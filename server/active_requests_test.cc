#include "active_requests.h"

#include <gtest/gtest.h>

#include <new>

namespace anyslot::server {
namespace {

TEST(ActiveRequestsTest, APlaceIsTakenUntilItIsLetGo) {
  ActiveRequests active(2);
  auto first = active.enter();
  const auto second = active.enter();
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(active.enter(), nullptr);
  first.reset();
  EXPECT_EQ(active.size(), 1U);
  EXPECT_NE(active.enter(), nullptr);
}

TEST(ActiveRequestsTest, CancelsAllThoughOneFailsOrLeavesMeanwhile) {
  ActiveRequests active(4);
  auto fails = active.enter();
  auto leaves = active.enter();
  const auto asks_nothing = active.enter();
  const auto last = active.enter();
  int cancelled = 0;
  fails->on_cancel([] { throw std::bad_alloc(); });
  leaves->on_cancel([&] { leaves.reset(); });
  last->on_cancel([&] { ++cancelled; });
  EXPECT_NO_THROW(active.cancel_all());
  EXPECT_EQ(cancelled, 1);
  EXPECT_EQ(active.size(), 3U);
}

}  // namespace
}  // namespace anyslot::server
