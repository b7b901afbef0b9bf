#pragma once

#include <cuda_runtime_api.h>

#include <span>

#include "backend/cuda/cuda_kv_storage.h"
#include "backend/cuda/device_memory.h"
#include "backend/rope.h"

namespace anyslot::cuda {

/// Runs block copies in all layers, in a stream of its own beside the step that they belong to.
class BlockCopier {
 public:
  BlockCopier() = default;
  BlockCopier(const BlockCopier&) = delete;
  BlockCopier& operator=(const BlockCopier&) = delete;
  ~BlockCopier();
  Status open();

  /// Starts copies after what `stream` has to do by now. rope: one table per layer; arguments are
  /// checked.
  Status run(CudaKvStorage& storage, std::span<const BlockCopy> copies,
             std::span<const RopeTable* const> rope, cudaStream_t stream);
  /// Lets what comes in `stream` from now on wait for the copies that it has not waited for.
  Status let_wait(cudaStream_t stream);

 private:
  cudaStream_t side_ = nullptr;
  Event before_;
  Event done_;
  bool pending_ = false;
  StagedCopy orders_;
};

}  // namespace anyslot::cuda
