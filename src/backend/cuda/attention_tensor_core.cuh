#pragma once

#include "backend/cuda/attention_instances.h"
#include "backend/cuda/attention_narrow.cuh"
#include "backend/cuda/attention_wide.cuh"

namespace anyslot::cuda {

template <typename T, int kHeadDim>
Status TensorCoreAttention<T, kHeadDim>::prepare() {
  Status status = narrow::prepare<T, kHeadDim>();
  return status.ok() ? wide::prepare<T, kHeadDim>() : status;
}

template <typename T, int kHeadDim>
Status TensorCoreAttention<T, kHeadDim>::launch(const AttentionArgs& args,
                                                const PositionedQ& positioned, int num_processors,
                                                cudaStream_t stream) {
  Status status = narrow::launch<T, kHeadDim>(args, num_processors, stream);
  return status.ok() ? wide::launch<T, kHeadDim>(args, positioned, num_processors, stream) : status;
}

}  // namespace anyslot::cuda
