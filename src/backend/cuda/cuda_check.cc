#include "backend/cuda/cuda_check.h"

#include <string>

namespace anyslot::cuda {

Status cuda_status(cudaError_t error, std::string_view what) {
  if (error == cudaSuccess) return {};
  const std::string message = std::string(what) + ": " + cudaGetErrorString(error);
  if (error != cudaErrorMemoryAllocation) return internal_error(message);
  cudaGetLastError();  // running out of memory leaves the device usable
  return resource_exhausted(message);
}

}  // namespace anyslot::cuda
