#include "gate.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

namespace anyslot::server {
namespace {

TEST(GateTest, LetsTheOthersInByTurnsAsThoseInsideLeave) {
  Gate gate(2);
  std::vector<int> order;
  std::vector<Gate::Pass> inside;
  for (int i = 0; i < 4; ++i) {
    gate.enter([&, i](Gate::Pass pass) {
      order.push_back(i);
      inside.push_back(std::move(pass));
    });
  }
  EXPECT_EQ(order, (std::vector<int>{0, 1}));
  Gate::Pass first = std::move(inside[0]);
  first.reset();
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2}));
  first = std::move(inside[1]);
  first.reset();
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3}));
}

TEST(GateTest, OneThatThrowsHasLeft) {
  Gate gate(1);
  EXPECT_THROW(gate.enter([](const Gate::Pass&) { throw std::runtime_error("broken"); }),
               std::runtime_error);
  Gate::Pass kept;
  gate.enter([&](Gate::Pass pass) { kept = std::move(pass); });
  ASSERT_NE(kept, nullptr);
  bool last = false;
  gate.enter([](const Gate::Pass&) { throw std::runtime_error("broken"); });
  gate.enter([&](const Gate::Pass&) { last = true; });
  EXPECT_NO_THROW(kept.reset());
  EXPECT_TRUE(last) << "the one that threw kept no place";
}

}  // namespace
}  // namespace anyslot::server
