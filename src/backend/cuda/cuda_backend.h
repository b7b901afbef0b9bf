#pragma once

#include <cuda_runtime_api.h>

#include <memory>

#include "backend/ops.h"

namespace anyslot::cuda {

struct CudaOptions {
  bool tensor_cores = true;       // off: the plain attention kernel, for comparison
  cudaStream_t stream = nullptr;  // where operations run; nullptr: in a stream of the backend's own
};

Expected<std::unique_ptr<Backend>> open_cuda_backend(const BackendOptions& options,
                                                     const CudaOptions& cuda_options);

}  // namespace anyslot::cuda
