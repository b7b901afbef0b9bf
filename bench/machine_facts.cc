#include "machine_facts.h"

#include <fmt/format.h>

#include "anyslot/build_info.h"
#include "cli/machine_info.h"
#include "cli/sizes.h"

namespace anyslot::bench {

Report::Facts machine_facts() {
  const cli::MachineInfo machine = cli::machine_info();
  Report::Facts facts;
  for (const auto& [name, value] : build_info()) {
    if (name == "version" || name == "compiler") facts.emplace_back(name, value);
  }
  facts.emplace_back(
      "cpu", fmt::format("{}, {} for this process", machine.cpu.empty() ? "unknown" : machine.cpu,
                         machine.num_cpus));
  facts.emplace_back("memory", cli::format_size(machine.memory_bytes));
  return facts;
}

}  // namespace anyslot::bench
