#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

namespace anyslot::cli {

/// What the kernel says of this machine; empty or 0 where it says nothing.
struct MachineInfo {
  std::string cpu;              // "AMD EPYC 9654 96-Core Processor"
  std::set<std::string> flags;  // of /proc/cpuinfo: "avx2", "avx512_bf16", ...
  int num_cpus = 0;             // logical CPUs that this process may use
  int64_t memory_bytes = 0;
  int64_t available_bytes = 0;
};

MachineInfo machine_info();

/// The parts of the texts of /proc/cpuinfo and /proc/meminfo.
MachineInfo parse_machine_info(std::string_view cpuinfo, std::string_view meminfo);

}  // namespace anyslot::cli
