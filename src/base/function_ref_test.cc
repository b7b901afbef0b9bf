#include "base/function_ref.h"

#include <gtest/gtest.h>

#include <memory>

namespace anyslot {
namespace {

int call_twice(FunctionRef<int(int)> function) {
  function(1);
  return function(2);
}

int negate(int value) { return -value; }

TEST(FunctionRef, CallsTheOwnersObject) {
  int sum = 10;
  auto add = [&sum](int value) mutable { return sum += value; };
  EXPECT_EQ(call_twice(add), 13);
  EXPECT_EQ(call_twice([&sum](int value) { return sum * value; }), 26) << "a temporary";
  const auto constant = [](int value) { return value + 1; };
  EXPECT_EQ(call_twice(constant), 3);
  auto* const pointer = &negate;
  EXPECT_EQ(call_twice(pointer), -2);
}

TEST(FunctionRef, CopiesReferToTheSameObject) {
  int calls = 0;
  auto count = [&calls] { ++calls; };
  const FunctionRef<void()> first = count;
  const FunctionRef<void()> second = first;
  first();
  second();
  EXPECT_EQ(calls, 2);
}

TEST(FunctionRef, PassesArgumentsOnWithoutCopies) {
  const auto take = [](std::unique_ptr<int> number) { return *number; };
  const FunctionRef<int(std::unique_ptr<int>)> function = take;
  EXPECT_EQ(function(std::make_unique<int>(7)), 7);
}

}  // namespace
}  // namespace anyslot
