#pragma once

#include <cuda_runtime_api.h>

#include <span>

#include "backend/cuda/cuda_kv_storage.h"
#include "backend/cuda/device_memory.h"
#include "backend/rope.h"

namespace anyslot::cuda {

/// Runs block copies in all layers.
class BlockCopier {
 public:
  /// rope: one table per layer; arguments are checked.
  Status run(CudaKvStorage& storage, std::span<const BlockCopy> copies,
             std::span<const RopeTable* const> rope, cudaStream_t stream);

 private:
  PinnedMemory staging_;
  DeviceMemory staged_;
  Event staging_free_;
};

}  // namespace anyslot::cuda
