#include "machine_info.h"

#include <gtest/gtest.h>

namespace anyslot::cli {
namespace {

TEST(MachineInfo, ReadsTheKernelsTexts) {
  const MachineInfo info = parse_machine_info(
      "processor\t: 0\nmodel name\t: AMD EPYC 9654 96-Core Processor\nflags\t\t: fpu avx2  fma\n"
      "processor\t: 1\nmodel name\t: another\n",
      "MemTotal:       16384 kB\nMemFree:  1 kB\nMemAvailable:    8192 kB\n");
  EXPECT_EQ(info.cpu, "AMD EPYC 9654 96-Core Processor");
  EXPECT_EQ(info.flags, (std::set<std::string>{"avx2", "fma", "fpu"}));
  EXPECT_EQ(info.memory_bytes, 16384 * 1024);
  EXPECT_EQ(info.available_bytes, 8192 * 1024);
}

TEST(MachineInfo, IsEmptyWhereTheKernelSaysNothing) {
  const MachineInfo info = parse_machine_info("", "");
  EXPECT_EQ(info.cpu, "");
  EXPECT_TRUE(info.flags.empty());
  EXPECT_EQ(info.memory_bytes, 0);
}

TEST(MachineInfo, FindsThisMachine) {
  EXPECT_GT(machine_info().memory_bytes, 0);
  EXPECT_GT(machine_info().num_cpus, 0);
}

}  // namespace
}  // namespace anyslot::cli
