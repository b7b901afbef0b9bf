#include "base/cpu_count.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "support/temporary_folder.h"

namespace anyslot {
namespace {

namespace fs = std::filesystem;

/// A folder that stands for the root of a file system.
class CpuQuota : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(root_.file(path)).parent_path());
    root_.write(path, text);
  }
  std::optional<double> quota() { return cpu_quota(root_.path()); }

  testing_support::TemporaryFolder root_;
};

TEST_F(CpuQuota, IsNoneWithoutGroups) { EXPECT_FALSE(quota().has_value()); }

TEST_F(CpuQuota, IsTheTightestOfTheGroupAndItsParents) {
  write("proc/self/cgroup", "0::/a/b\n");
  write("sys/fs/cgroup/cgroup.procs", "");
  EXPECT_FALSE(quota().has_value());
  write("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  EXPECT_FALSE(quota().has_value());
  write("sys/fs/cgroup/a/cpu.max", "250000 100000\n");
  EXPECT_DOUBLE_EQ(quota().value(), 2.5);
  write("sys/fs/cgroup/a/b/cpu.max", "50000 100000\n");
  EXPECT_DOUBLE_EQ(quota().value(), 0.5);
  write("sys/fs/cgroup/cpu.max", "20000 100000\n");
  EXPECT_DOUBLE_EQ(quota().value(), 0.2);
}

TEST_F(CpuQuota, OfTheRootsGroupInAContainer) {
  write("proc/self/cgroup", "0::/\n");
  write("sys/fs/cgroup/cpu.max", "300000 100000\n");
  EXPECT_DOUBLE_EQ(quota().value(), 3);
}

TEST_F(CpuQuota, OfVersionOne) {
  write("proc/self/cgroup", "5:memory:/m\n4:cpu,cpuacct:/host/c\n3:cpuset:/s\n");
  write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  EXPECT_FALSE(quota().has_value());
  write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "150000\n");
  EXPECT_DOUBLE_EQ(quota().value(), 1.5) << "the group's own folder is not mounted";
  write("sys/fs/cgroup/cpu/host/c/cpu.cfs_quota_us", "60000\n");
  write("sys/fs/cgroup/cpu/host/c/cpu.cfs_period_us", "50000\n");
  EXPECT_DOUBLE_EQ(quota().value(), 1.2);
}

TEST_F(CpuQuota, IgnoresBrokenFiles) {
  write("proc/self/cgroup", "rubbish\n0::/a\n1:cpu:/\n");
  write("sys/fs/cgroup/a/cpu.max", "many few\n");
  write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "100000\n");
  write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "0\n");
  EXPECT_FALSE(quota().has_value());
}

TEST(DefaultThreads, AreSomeButNoMoreThanTheMachineHas) {
  EXPECT_GE(default_num_threads(), 1);
  EXPECT_LE(default_num_threads(), num_physical_cores());
  EXPECT_LE(num_physical_cores(), sysconf(_SC_NPROCESSORS_CONF));
}

}  // namespace
}  // namespace anyslot
