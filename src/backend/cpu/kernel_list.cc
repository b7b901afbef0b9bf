#include "backend/cpu/kernel_list.h"

#include <string>

#include "backend/cpu/kernel_tables.h"

namespace anyslot::cpu {

namespace {

constexpr KernelSet kKernelSets[] = {
    {&kAvx2Kernels, [](const CpuFeatures& features) { return features.avx2; }},
    {&kAvx512Kernels, [](const CpuFeatures& features) { return features.avx512; }},
    {&kAvx512Bf16Kernels, [](const CpuFeatures& features) { return features.avx512_bf16; }},
};

std::string joined_names() {
  std::string names;
  for (const KernelSet& set : kKernelSets) {
    if (!names.empty()) names += ", ";
    names += set.table->name;
  }
  return names;
}

}  // namespace

std::span<const KernelSet> kernel_sets() { return kKernelSets; }

Expected<const KernelTable*> choose_kernels(std::string_view max_isa, const CpuFeatures& features) {
  const KernelTable* best = nullptr;
  bool limit_is_known = max_isa.empty();
  for (const KernelSet& set : kKernelSets) {
    if (set.is_supported(features)) best = set.table;
    if (max_isa == set.table->name) {
      limit_is_known = true;
      break;
    }
  }
  if (!limit_is_known) {
    return invalid_argument("unknown instruction set '" + std::string(max_isa) +
                            "': of a CPU it is one of " + joined_names());
  }
  if (best == nullptr) {
    return failed_precondition(
        "this processor has none of the instruction sets that the CPU backend was built for (" +
        joined_names() + "): use the device 'reference'");
  }
  return best;
}

const KvKernels& kv_kernels_of(const KernelTable& kernels, DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return *kernels.float32_kv;
    case DType::kFloat8E4M3:
      return *kernels.fp8_kv;
    case DType::kBFloat16:
    case DType::kFloat16:  // a pool of it is refused
      break;
  }
  return *kernels.bfloat16_kv;
}

}  // namespace anyslot::cpu
