#pragma once

#include <vector>

#include "backend/cpu/cpu_features.h"
#include "backend/cpu/kernel_list.h"

namespace anyslot::cpu {

inline std::vector<const KernelTable*> usable_kernels() {
  std::vector<const KernelTable*> tables;
  for (const KernelSet& set : kernel_sets()) {
    if (set.is_supported(detect_cpu_features())) tables.push_back(set.table);
  }
  return tables;
}

}  // namespace anyslot::cpu
