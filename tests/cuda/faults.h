#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>

// Makes calls of the CUDA runtime and of cuBLASLt fail, in a program that is linked so that they
// come through here (CMakeLists.txt lists them). The code under test knows nothing of it.

namespace anyslot::testing_support {

enum class CudaCall {
  kMalloc,
  kMallocHost,
  kMemset,
  kMemcpy,
  kMemcpyAsync,
  kMemcpy2DAsync,
  kLaunch,
  kEventRecord,
  kStreamWaitEvent,
  kStreamSynchronize,
  kStreamBeginCapture,
  kStreamEndCapture,
  kGraphInstantiate,
  kGraphLaunch,
  kMatmul,
};
inline constexpr int kNumCudaCalls = static_cast<int>(CudaCall::kMatmul) + 1;
std::string name_of(CudaCall call);

/// From here on calls are counted anew, and all succeed that can.
void count_cuda_calls();
int64_t num_cuda_calls(CudaCall call);
/// Counts anew; of the calls of that kind, number `index` (from 0) fails.
void fail_cuda_call(CudaCall call, int64_t index);
/// Whether the call that should fail has come.
bool has_failed_cuda_call();
/// Runs a kernel that writes where it may not before the next kernel of the program, after which
/// the process cannot use the GPU any more.
void break_next_launch();
/// Starts that kernel.
void launch_illegal_write(cudaStream_t stream);

}  // namespace anyslot::testing_support
