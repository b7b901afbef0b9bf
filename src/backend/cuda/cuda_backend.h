#pragma once

#include <memory>

#include "backend/ops.h"

namespace anyslot::cuda {

struct CudaOptions {
  bool tensor_cores = true;  // off: the plain attention kernel, for comparison
};

Expected<std::unique_ptr<Backend>> open_cuda_backend(const BackendOptions& options,
                                                     const CudaOptions& cuda_options);

}  // namespace anyslot::cuda
