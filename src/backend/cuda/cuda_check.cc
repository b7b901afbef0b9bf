#include "backend/cuda/cuda_check.h"

#include <algorithm>
#include <iterator>
#include <string>

namespace anyslot::cuda {

namespace {

/// After these every call of the process fails, whatever it does.
constexpr cudaError_t kFatalErrors[] = {cudaErrorECCUncorrectable,
                                        cudaErrorNvlinkUncorrectable,
                                        cudaErrorIllegalAddress,
                                        cudaErrorLaunchTimeout,
                                        cudaErrorAssert,
                                        cudaErrorHardwareStackError,
                                        cudaErrorIllegalInstruction,
                                        cudaErrorMisalignedAddress,
                                        cudaErrorInvalidAddressSpace,
                                        cudaErrorInvalidPc,
                                        cudaErrorLaunchFailure,
                                        cudaErrorContained};

}  // namespace

Status cuda_status(cudaError_t error, std::string_view what) {
  if (error == cudaSuccess) return {};
  cudaGetLastError();  // or the next launch would seem to have failed
  std::string message = std::string(what) + ": " + cudaGetErrorString(error);
  if (error == cudaErrorMemoryAllocation) return resource_exhausted(std::move(message));
  if (std::ranges::find(kFatalErrors, error) != std::end(kFatalErrors)) {
    message += "; this process cannot use the GPU any more: restart it";
  }
  return internal_error(std::move(message));
}

}  // namespace anyslot::cuda
