#include "cuda/faults.h"

#include <cublasLt.h>

#include <array>
#include <mutex>
#include <utility>

namespace anyslot::testing_support {

namespace {

constexpr std::array<const char*, kNumCudaCalls> kNames = {"cudaMalloc",
                                                           "cudaMallocHost",
                                                           "cudaMemset",
                                                           "cudaMemcpy",
                                                           "cudaMemcpyAsync",
                                                           "cudaMemcpy2DAsync",
                                                           "launch",
                                                           "cudaEventRecord",
                                                           "cudaStreamWaitEvent",
                                                           "cudaStreamSynchronize",
                                                           "cudaStreamBeginCapture",
                                                           "cudaStreamEndCapture",
                                                           "cudaGraphInstantiate",
                                                           "cudaGraphLaunch",
                                                           "cublasLtMatmul"};

struct Plan {
  std::mutex mutex;  // the test's thread arms, the engine's calls
  std::array<int64_t, kNumCudaCalls> calls{};
  int failing = -1;  // the kind of the call that fails
  int64_t index = 0;
  bool has_failed = false;
  bool breaks_launch = false;
  cudaError_t launch_error = cudaSuccess;  // what cudaGetLastError has to tell
};

/// The linker knows functions only.
Plan& plan() {
  static Plan the_plan;
  return the_plan;
}

void arm(int call, int64_t index) {
  Plan& p = plan();
  const std::lock_guard lock(p.mutex);
  p.calls.fill(0);
  p.failing = call;
  p.index = index;
  p.has_failed = false;
}

bool fails(CudaCall call) {
  Plan& p = plan();
  const std::lock_guard lock(p.mutex);
  const auto kind = static_cast<int>(call);
  const int64_t index = p.calls[static_cast<size_t>(kind)]++;
  if (kind != p.failing || index != p.index) return false;
  p.has_failed = true;
  return true;
}

bool fails_launch(cudaStream_t stream) {
  bool breaks = false;
  {
    const std::lock_guard lock(plan().mutex);
    breaks = std::exchange(plan().breaks_launch, false);
  }
  if (breaks) launch_illegal_write(stream);
  return fails(CudaCall::kLaunch);
}

}  // namespace

std::string name_of(CudaCall call) { return kNames[static_cast<size_t>(call)]; }

void count_cuda_calls() { arm(-1, 0); }
void fail_cuda_call(CudaCall call, int64_t index) { arm(static_cast<int>(call), index); }

int64_t num_cuda_calls(CudaCall call) {
  const std::lock_guard lock(plan().mutex);
  return plan().calls[static_cast<size_t>(call)];
}

bool has_failed_cuda_call() {
  const std::lock_guard lock(plan().mutex);
  return plan().has_failed;
}

void break_next_launch() {
  const std::lock_guard lock(plan().mutex);
  plan().breaks_launch = true;
}

}  // namespace anyslot::testing_support

// The linker gives a call of X to __wrap_X, and one of __real_X to X.

using anyslot::testing_support::CudaCall;
using anyslot::testing_support::fails;
using anyslot::testing_support::fails_launch;
using anyslot::testing_support::plan;

extern "C" {

decltype(cudaMalloc) __real_cudaMalloc;
cudaError_t __wrap_cudaMalloc(void** data, size_t bytes) {
  return fails(CudaCall::kMalloc) ? cudaErrorMemoryAllocation : __real_cudaMalloc(data, bytes);
}

decltype(cudaMallocHost) __real_cudaMallocHost;
cudaError_t __wrap_cudaMallocHost(void** data, size_t bytes) {
  return fails(CudaCall::kMallocHost) ? cudaErrorMemoryAllocation
                                      : __real_cudaMallocHost(data, bytes);
}

decltype(cudaMemset) __real_cudaMemset;
cudaError_t __wrap_cudaMemset(void* data, int value, size_t bytes) {
  return fails(CudaCall::kMemset) ? cudaErrorInvalidValue : __real_cudaMemset(data, value, bytes);
}

decltype(cudaMemcpy) __real_cudaMemcpy;
cudaError_t __wrap_cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  return fails(CudaCall::kMemcpy) ? cudaErrorInvalidValue
                                  : __real_cudaMemcpy(to, from, bytes, kind);
}

decltype(cudaMemcpyAsync) __real_cudaMemcpyAsync;
cudaError_t __wrap_cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                                   cudaStream_t stream) {
  return fails(CudaCall::kMemcpyAsync) ? cudaErrorInvalidValue
                                       : __real_cudaMemcpyAsync(to, from, bytes, kind, stream);
}

decltype(cudaMemcpy2DAsync) __real_cudaMemcpy2DAsync;
cudaError_t __wrap_cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                                     size_t width, size_t height, cudaMemcpyKind kind,
                                     cudaStream_t stream) {
  if (fails(CudaCall::kMemcpy2DAsync)) return cudaErrorInvalidValue;
  return __real_cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, width, height, kind, stream);
}

decltype(cudaEventRecord) __real_cudaEventRecord;
cudaError_t __wrap_cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return fails(CudaCall::kEventRecord) ? cudaErrorInvalidValue
                                       : __real_cudaEventRecord(event, stream);
}

decltype(cudaStreamWaitEvent) __real_cudaStreamWaitEvent;
cudaError_t __wrap_cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  return fails(CudaCall::kStreamWaitEvent) ? cudaErrorInvalidValue
                                           : __real_cudaStreamWaitEvent(stream, event, flags);
}

/// It waits all the same: what fails late has been waited for.
decltype(cudaStreamSynchronize) __real_cudaStreamSynchronize;
cudaError_t __wrap_cudaStreamSynchronize(cudaStream_t stream) {
  const cudaError_t error = __real_cudaStreamSynchronize(stream);
  return fails(CudaCall::kStreamSynchronize) ? cudaErrorUnknown : error;
}

decltype(cudaStreamBeginCapture) __real_cudaStreamBeginCapture;
cudaError_t __wrap_cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return fails(CudaCall::kStreamBeginCapture) ? cudaErrorInvalidValue
                                              : __real_cudaStreamBeginCapture(stream, mode);
}

/// One that fails ends the capture, too.
decltype(cudaStreamEndCapture) __real_cudaStreamEndCapture;
cudaError_t __wrap_cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const cudaError_t error = __real_cudaStreamEndCapture(stream, graph);
  if (!fails(CudaCall::kStreamEndCapture)) return error;
  cudaGraphDestroy(*graph);
  *graph = nullptr;
  return cudaErrorStreamCaptureInvalidated;
}

decltype(cudaGraphInstantiate) __real_cudaGraphInstantiate;
cudaError_t __wrap_cudaGraphInstantiate(cudaGraphExec_t* runnable, cudaGraph_t graph,
                                        unsigned long long flags) {
  return fails(CudaCall::kGraphInstantiate) ? cudaErrorMemoryAllocation
                                            : __real_cudaGraphInstantiate(runnable, graph, flags);
}

decltype(cudaGraphLaunch) __real_cudaGraphLaunch;
cudaError_t __wrap_cudaGraphLaunch(cudaGraphExec_t runnable, cudaStream_t stream) {
  return fails(CudaCall::kGraphLaunch) ? cudaErrorLaunchOutOfResources
                                       : __real_cudaGraphLaunch(runnable, stream);
}

/// Launches written <<<>>> come through here; their caller asks cudaGetLastError.
cudaError_t __real___cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                                      size_t shared_bytes, cudaStream_t stream);
cudaError_t __wrap___cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                                      size_t shared_bytes, cudaStream_t stream) {
  if (!fails_launch(stream)) {
    return __real___cudaLaunchKernel(kernel, grid, block, arguments, shared_bytes, stream);
  }
  plan().launch_error = cudaErrorLaunchOutOfResources;
  return cudaErrorLaunchOutOfResources;
}

decltype(cudaLaunchKernelExC) __real_cudaLaunchKernelExC;
cudaError_t __wrap_cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function,
                                       void** arguments) {
  return fails_launch(config->stream) ? cudaErrorLaunchOutOfResources
                                      : __real_cudaLaunchKernelExC(config, function, arguments);
}

decltype(cudaGetLastError) __real_cudaGetLastError;
cudaError_t __wrap_cudaGetLastError() {
  const cudaError_t error = std::exchange(plan().launch_error, cudaSuccess);
  return error == cudaSuccess ? __real_cudaGetLastError() : error;
}

decltype(cublasLtMatmul) __real_cublasLtMatmul;
cublasStatus_t __wrap_cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
                                     const void* alpha, const void* a,
                                     cublasLtMatrixLayout_t a_layout, const void* b,
                                     cublasLtMatrixLayout_t b_layout, const void* beta,
                                     const void* c, cublasLtMatrixLayout_t c_layout, void* d,
                                     cublasLtMatrixLayout_t d_layout,
                                     const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                                     size_t workspace_bytes, cudaStream_t stream) {
  if (fails(CudaCall::kMatmul)) return CUBLAS_STATUS_EXECUTION_FAILED;
  return __real_cublasLtMatmul(handle, operation, alpha, a, a_layout, b, b_layout, beta, c,
                               c_layout, d, d_layout, algorithm, workspace, workspace_bytes,
                               stream);
}

}  // extern "C"
