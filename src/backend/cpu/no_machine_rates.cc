#include "backend/cpu/machine_rates.h"

namespace anyslot::cpu {

std::vector<std::string> usable_instruction_sets() { return {}; }

Expected<MachineRates> measure_machine_rates(const std::string&, DType, ThreadPool&) {
  return failed_precondition("this processor has no kernels, and so no ceilings to measure");
}

}  // namespace anyslot::cpu
