#include "ceilings.h"

#include <fmt/format.h>

#include <algorithm>

#include "backend/cpu/machine_rates.h"
#include "base/thread_pool.h"

namespace anyslot::bench {

Expected<Ceilings> measure_ceilings(const std::string& isa, DType dtype, int num_threads) {
  ThreadPool threads(num_threads);
  const Expected<cpu::MachineRates> rates = cpu::measure_machine_rates(isa, dtype, threads);
  if (!rates) return rates.status();
  return Ceilings{rates->read_bytes_per_second, rates->operations_per_second};
}

LeastTime least_time(const Ceilings& ceilings, double operations, double bytes) {
  const double memory = bytes / ceilings.bytes_per_second;
  const double arithmetic = operations / ceilings.operations_per_second;
  return {std::max(memory, arithmetic), memory > arithmetic};
}

void add_ceilings_fact(const std::string& isa, DType dtype, const Ceilings& ceilings,
                       Report::Facts& facts) {
  facts.emplace_back(
      fmt::format("ceilings of {} in {}", isa, dtype_name(dtype)),
      fmt::format("{:.1f} GB/s of memory read, {:.0f} GFLOP/s of dot products",
                  ceilings.bytes_per_second / 1e9, ceilings.operations_per_second / 1e9));
}

}  // namespace anyslot::bench
