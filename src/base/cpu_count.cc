#include "base/cpu_count.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>
#include <string_view>

namespace anyslot {

namespace {

/// "150000 100000", or "max 100000" for no limit.
std::optional<double> read_quota_v2(const std::string& folder) {
  std::ifstream file(folder + "/cpu.max");
  double time = 0;
  double period = 0;
  if (!(file >> time >> period) || time <= 0 || period <= 0) return std::nullopt;
  return time / period;
}

/// A negative quota is no limit.
std::optional<double> read_quota_v1(const std::string& folder) {
  std::ifstream time_file(folder + "/cpu.cfs_quota_us");
  std::ifstream period_file(folder + "/cpu.cfs_period_us");
  double time = 0;
  double period = 0;
  if (!(time_file >> time) || !(period_file >> period) || time <= 0 || period <= 0) {
    return std::nullopt;
  }
  return time / period;
}

bool has_word(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const size_t comma = std::min(list.find(','), list.size());
    if (list.substr(0, comma) == word) return true;
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return false;
}

}  // namespace

int num_physical_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 1;
  std::set<std::string> cores;  // one sibling list per physical core
  int num_cpus = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    ++num_cpus;
    std::ifstream file("/sys/devices/system/cpu/cpu" + std::to_string(cpu) +
                       "/topology/thread_siblings_list");
    std::string siblings;
    if (std::getline(file, siblings)) cores.insert(siblings);
  }
  return cores.empty() ? std::max(num_cpus, 1) : static_cast<int>(cores.size());
}

std::optional<double> cpu_quota(const std::string& root) {
  std::optional<double> least;
  const auto tighten = [&least](const std::optional<double>& quota) {
    if (quota) least = std::min(*quota, least.value_or(*quota));
  };
  // In a container the file may name groups of the host that are not mounted here: what is missing
  // sets no limit.
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {  // hierarchy:controllers:/path
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool is_v2 = controllers.empty();
    if (!is_v2 && !has_word(controllers, "cpu")) continue;
    for (std::string group = line.substr(second + 1);; group.resize(group.rfind('/'))) {
      if (is_v2) {
        tighten(read_quota_v2(root + "/sys/fs/cgroup" + group));
      } else {
        tighten(read_quota_v1(root + "/sys/fs/cgroup/cpu" + group));
        tighten(read_quota_v1(root + "/sys/fs/cgroup/" + controllers + group));
      }
      if (group.rfind('/') == std::string::npos) break;
    }
  }
  return least;
}

int default_num_threads() {
  const int cores = num_physical_cores();
  const std::optional<double> quota = cpu_quota("/");
  return quota && *quota < cores ? std::max(1, static_cast<int>(std::ceil(*quota))) : cores;
}

}  // namespace anyslot
