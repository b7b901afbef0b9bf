// In every build: no header of CUDA here.

#include <string>

#include "backend/ops.h"

namespace anyslot {

Status check_cuda_needs(const ModelNeeds& needs) {
  constexpr int kMaxHeadDim = 256;
  const auto refusal = [](const std::string& what) {
    return failed_precondition(what + " are not served on a GPU: use the device 'cpu'");
  };
  if (needs.score_caps) return refusal("models with soft caps of scores (Gemma 2)");
  if (needs.experts) return refusal("models with experts");
  if (needs.head_dim % 8 != 0 || needs.head_dim > kMaxHeadDim) {
    return failed_precondition("no GPU attention kernel serves head_dim " +
                               std::to_string(needs.head_dim) +
                               ": it must be a multiple of 8 up to " + std::to_string(kMaxHeadDim) +
                               "; use the device 'reference'");
  }
  return {};
}

}  // namespace anyslot
