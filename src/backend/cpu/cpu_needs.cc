// In every build: no kernel here.

#include <string>

#include "backend/cpu/kernels.h"
#include "backend/ops.h"

namespace anyslot {

Status check_cpu_needs(const ModelNeeds& needs) {
  if (needs.head_dim % 16 == 0 && needs.head_dim <= cpu::kMaxHeadDim) return {};
  return failed_precondition("no CPU attention kernel serves head_dim " +
                             std::to_string(needs.head_dim) +
                             ": it must be a multiple of 16 up to " +
                             std::to_string(cpu::kMaxHeadDim) + "; use the device 'reference'");
}

}  // namespace anyslot
