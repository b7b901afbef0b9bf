#include "machine_info.h"

#include <sched.h>

#include <algorithm>
#include <charconv>

#include "text_file.h"

namespace anyslot::cli {
namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

/// The value of the first line "name : value"; empty when there is none.
std::string_view value_of(std::string_view text, std::string_view name) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    const size_t colon = line.find(':');
    if (colon != std::string_view::npos && trimmed(line.substr(0, colon)) == name) {
      return trimmed(line.substr(colon + 1));
    }
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  return {};
}

int64_t kilobytes(std::string_view value) {
  int64_t number = 0;
  std::from_chars(value.data(), value.data() + value.size(), number);
  return number * 1024;
}

}  // namespace

MachineInfo parse_machine_info(std::string_view cpuinfo, std::string_view meminfo) {
  MachineInfo info;
  info.cpu = value_of(cpuinfo, "model name");
  std::string_view flags = value_of(cpuinfo, "flags");
  if (flags.empty()) flags = value_of(cpuinfo, "Features");  // ARM
  while (!flags.empty()) {
    const size_t end = std::min(flags.find(' '), flags.size());
    if (end > 0) info.flags.emplace(flags.substr(0, end));
    flags.remove_prefix(std::min(end + 1, flags.size()));
  }
  info.memory_bytes = kilobytes(value_of(meminfo, "MemTotal"));
  info.available_bytes = kilobytes(value_of(meminfo, "MemAvailable"));
  return info;
}

MachineInfo machine_info() {
  const auto text_of = [](const char* path) {
    Expected<std::string> text = read_file(path);
    return text ? *std::move(text) : std::string();
  };
  MachineInfo info = parse_machine_info(text_of("/proc/cpuinfo"), text_of("/proc/meminfo"));
  cpu_set_t cpus;
  if (sched_getaffinity(0, sizeof cpus, &cpus) == 0) info.num_cpus = CPU_COUNT(&cpus);
  return info;
}

}  // namespace anyslot::cli
