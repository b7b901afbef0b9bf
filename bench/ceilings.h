#pragma once

#include <string>

#include "anyslot/status.h"
#include "base/dtype.h"
#include "report.h"

namespace anyslot::bench {

/// What this machine can reach at most, measured in the same run.
struct Ceilings {
  double bytes_per_second = 0;       // reading memory
  double operations_per_second = 0;  // dot products between registers
};

/// `isa`: of usable_instruction_sets, or "" for the best. See cpu::measure_machine_rates.
Expected<Ceilings> measure_ceilings(const std::string& isa, DType dtype, int num_threads);

/// The least time, in seconds, that so many operations and bytes can take.
struct LeastTime {
  double seconds = 0;
  bool bound_by_memory = false;
};
LeastTime least_time(const Ceilings& ceilings, double operations, double bytes);

/// "ceilings (avx512_bf16, bfloat16)": "34.1 GB/s of memory, 451 GFLOP/s".
void add_ceilings_fact(const std::string& isa, DType dtype, const Ceilings& ceilings,
                       Report::Facts& facts);

}  // namespace anyslot::bench
