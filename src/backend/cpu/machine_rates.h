#pragma once

#include <string>
#include <vector>

#include "anyslot/status.h"
#include "base/dtype.h"
#include "base/thread_pool.h"

namespace anyslot::cpu {

/// The instruction sets of kernel_list.h that this machine can run, the slowest first.
std::vector<std::string> usable_instruction_sets();

/// The best of several measurements with all threads of the pool.
struct MachineRates {
  double read_bytes_per_second = 0;  // of memory that no cache holds
  double operations_per_second = 0;  // dot products between registers; a multiplication and an
                                     // addition count apiece
};

/// What a kernel of this instruction set ("" takes the best) and type can reach at most. Takes
/// about a second. Fails with kInvalidArgument for an instruction set that the machine cannot run
/// and with kResourceExhausted when there is no memory to read.
Expected<MachineRates> measure_machine_rates(const std::string& isa, DType dtype,
                                             ThreadPool& threads);

}  // namespace anyslot::cpu
