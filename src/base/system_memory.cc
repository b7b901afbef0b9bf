#include "base/system_memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <string>

namespace anyslot {

namespace {

// "max" and missing files give nothing.
std::optional<int64_t> read_number(const std::string& path) {
  std::ifstream file(path);
  int64_t value = 0;
  if (!(file >> value)) return std::nullopt;
  return value;
}

int64_t system_available() {
  std::ifstream file("/proc/meminfo");
  for (std::string name; file >> name;) {
    int64_t kibibytes = 0;
    file >> kibibytes;
    if (name == "MemAvailable:") return kibibytes * 1024;
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return 0;
}

// The path below /sys/fs/cgroup, from the line "0::PATH".
std::string control_group() {
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("0::")) return line.substr(3);
  }
  return "/";
}

}  // namespace

int64_t available_memory_bytes() {
  int64_t available = system_available();
  for (std::string group = control_group();; group.resize(group.rfind('/'))) {
    const std::string folder = "/sys/fs/cgroup" + group;
    const auto limit = read_number(folder + "/memory.max");
    const auto used = read_number(folder + "/memory.current");
    if (limit && used) available = std::min(available, std::max<int64_t>(0, *limit - *used));
    if (group.empty() || group.rfind('/') == std::string::npos) return available;
  }
}

}  // namespace anyslot
