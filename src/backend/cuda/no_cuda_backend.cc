#include "backend/ops.h"

namespace anyslot {

Expected<std::unique_ptr<Backend>> create_cuda_backend(const BackendOptions&) {
  return failed_precondition(
      "this build has no CUDA kernels: build with -DANYSLOT_CUDA=ON, or use the device 'cpu'");
}

}  // namespace anyslot
