#include "cuda/faults.h"

namespace anyslot::testing_support {

namespace {

__global__ void write_to(int* address) { *address = 1; }

}  // namespace

void launch_illegal_write(cudaStream_t stream) {
  constexpr uintptr_t kNobodys = 64;
  write_to<<<1, 1, 0, stream>>>(reinterpret_cast<int*>(kNobodys));
}

}  // namespace anyslot::testing_support
