#include "backend/ops.h"

namespace anyslot {

Expected<std::unique_ptr<Backend>> create_cpu_backend(const BackendOptions&) {
  return failed_precondition(
      "this build has no CPU kernels for this kind of processor: use the device 'reference'");
}

}  // namespace anyslot
