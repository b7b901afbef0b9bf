#pragma once

#include "backend/cpu/kernels.h"

namespace anyslot::cpu {

// Constant-initialized: reading one runs no code of its instruction set.
extern const KernelTable kAvx2Kernels;
extern const KernelTable kAvx512Kernels;
extern const KernelTable kAvx512Bf16Kernels;

}  // namespace anyslot::cpu
