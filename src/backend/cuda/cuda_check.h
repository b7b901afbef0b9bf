#pragma once

#include <cuda_runtime_api.h>

#include <string_view>

#include "anyslot/status.h"

namespace anyslot::cuda {

/// Ok, or kInternal naming `what` and the device's error, and that the process must be restarted
/// when it must; kResourceExhausted when memory ran out.
Status cuda_status(cudaError_t error, std::string_view what);

/// The same of the launch just made. Errors inside of a kernel show at the next synchronization.
inline Status launch_status(std::string_view what) { return cuda_status(cudaGetLastError(), what); }

}  // namespace anyslot::cuda
