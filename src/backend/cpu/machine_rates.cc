#include "backend/cpu/machine_rates.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>

#include "backend/cpu/cpu_features.h"
#include "backend/cpu/host_memory.h"
#include "backend/cpu/kernel_list.h"
#include "backend/cpu/rate_kernels.h"

namespace anyslot::cpu {

namespace {

using Clock = std::chrono::steady_clock;

constexpr const RateKernels* kRateKernels[] = {&kAvx2RateKernels, &kAvx512RateKernels,
                                               &kAvx512Bf16RateKernels};
constexpr size_t kReadBytes = size_t{512} << 20;  // more than caches hold
constexpr size_t kReadChunk = size_t{4} << 20;
constexpr int kRounds = 8;

const RateKernels* find_kernels(const std::string& name) {
  const auto found = std::ranges::find_if(
      kRateKernels, [&](const RateKernels* kernels) { return kernels->name == name; });
  return found == std::end(kRateKernels) ? nullptr : *found;
}

/// The shortest of several runs, in seconds.
template <typename Work>
double best_seconds(const Work& work) {
  double best = 1e30;
  for (int round = 0; round < kRounds; ++round) {
    const Clock::time_point start = Clock::now();
    work();
    best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count());
  }
  return best;
}

double measure_arithmetic(const ArithmeticLoop& loop, ThreadPool& threads) {
  constexpr int64_t kIterations = 100'000;
  std::atomic<float> sink = 0;  // keeps the compiler from leaving the work out
  const double seconds = best_seconds([&] {
    threads.parallel_for(threads.num_threads(),
                         [&](int64_t, int) { sink = loop.run(kIterations); });
  });
  return static_cast<double>(kIterations * loop.operations * threads.num_threads()) / seconds;
}

double measure_reading(const RateKernels& kernels, const HostMemory& memory, ThreadPool& threads) {
  std::atomic<uint64_t> sink = 0;
  const double seconds = best_seconds([&] {
    threads.parallel_for(static_cast<int64_t>(kReadBytes / kReadChunk), [&](int64_t chunk, int) {
      sink = kernels.read(memory.data() + static_cast<size_t>(chunk) * kReadChunk, kReadChunk);
    });
  });
  return static_cast<double>(kReadBytes) / seconds;
}

}  // namespace

std::vector<std::string> usable_instruction_sets() {
  std::vector<std::string> names;
  for (const KernelSet& set : kernel_sets()) {
    if (set.is_supported(detect_cpu_features())) names.emplace_back(set.table->name);
  }
  return names;
}

Expected<MachineRates> measure_machine_rates(const std::string& isa, DType dtype,
                                             ThreadPool& threads) {
  const std::vector<std::string> usable = usable_instruction_sets();
  const std::string name = isa.empty() && !usable.empty() ? usable.back() : isa;
  const RateKernels* kernels = find_kernels(name);
  if (kernels == nullptr || std::ranges::find(usable, name) == usable.end()) {
    return invalid_argument("this machine cannot run instruction set '" + name + "'");
  }
  Expected<HostMemory> memory = HostMemory::allocate(kReadBytes, "measuring memory bandwidth");
  if (!memory) return memory.status();
  // Pages that were never written are all the same page of zeros.
  threads.parallel_for(static_cast<int64_t>(kReadBytes / kReadChunk), [&](int64_t chunk, int) {
    std::memset(memory->data() + static_cast<size_t>(chunk) * kReadChunk, 1, kReadChunk);
  });
  MachineRates rates;
  threads.begin_step();
  rates.operations_per_second =
      measure_arithmetic(dtype == DType::kBFloat16 ? kernels->bfloat16 : kernels->float32, threads);
  rates.read_bytes_per_second = measure_reading(*kernels, *memory, threads);
  threads.end_step();
  return rates;
}

}  // namespace anyslot::cpu
