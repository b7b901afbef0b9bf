#pragma once

#include <span>
#include <string_view>

#include "anyslot/status.h"
#include "backend/cpu/cpu_features.h"
#include "backend/cpu/kernels.h"

namespace anyslot::cpu {

/// One instruction set that kernels were built for.
struct KernelSet {
  const KernelTable* table;
  bool (*is_supported)(const CpuFeatures& features);
};

/// All of them, the slowest first.
std::span<const KernelSet> kernel_sets();

/// The fastest set that the machine supports and that is not above `max_isa` (empty: no limit).
/// Fails with kInvalidArgument for an unknown name, with kFailedPrecondition when the machine
/// supports none.
Expected<const KernelTable*> choose_kernels(std::string_view max_isa, const CpuFeatures& features);

/// The kernels for KV of `dtype`: bfloat16, float32 or fp8_e4m3.
const KvKernels& kv_kernels_of(const KernelTable& kernels, DType dtype);

}  // namespace anyslot::cpu
