#include "base/system_memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace anyslot {
namespace {

TEST(SystemMemory, IsSomeButNotMoreThanTheMachineHas) {
  const int64_t physical = int64_t{sysconf(_SC_PHYS_PAGES)} * int64_t{sysconf(_SC_PAGESIZE)};
  EXPECT_GT(available_memory_bytes(), int64_t{1} << 20);
  EXPECT_LE(available_memory_bytes(), physical);
}

}  // namespace
}  // namespace anyslot
