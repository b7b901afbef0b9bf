#include "guarded_task.h"

#include <gtest/gtest.h>

#include <memory>
#include <new>
#include <stdexcept>

namespace anyslot::server {
namespace {

TEST(GuardedTask, GoesOnAndLetsGoOfWhatFailed) {
  const Logger log = *make_logger("off");
  auto held = std::make_shared<int>(0);
  const std::weak_ptr<int> weak = held;
  {
    const Task memory = guarded([held = std::move(held)] { throw std::bad_alloc(); }, log);
    EXPECT_NO_THROW(memory());
  }
  EXPECT_TRUE(weak.expired());
  EXPECT_NO_THROW(guarded([] { throw std::runtime_error("broken"); }, log)());
}

}  // namespace
}  // namespace anyslot::server
