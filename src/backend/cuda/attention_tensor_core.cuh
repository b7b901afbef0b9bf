#pragma once

#include "backend/cuda/attention_hopper.cuh"
#include "backend/cuda/attention_instances.h"
#include "backend/cuda/attention_narrow.cuh"
#include "backend/cuda/attention_wide.cuh"

namespace anyslot::cuda {

/// Whether there is a kernel of sm_90a for such heads.
template <typename T, int kHeadDim>
inline constexpr bool kHasHopper = sizeof(T) == sizeof(uint16_t) && kHeadDim == hopper::kHeadDim;

template <typename T, int kHeadDim>
Status TensorCoreAttention<T, kHeadDim>::prepare() {
  if (Status status = narrow::prepare<T, kHeadDim>(); !status) return status;
  if constexpr (kHasHopper<T, kHeadDim>) {
    if (Status status = hopper::prepare<T>(); !status) return status;
  }
  return wide::prepare<T, kHeadDim>();
}

template <typename T, int kHeadDim>
Status TensorCoreAttention<T, kHeadDim>::launch(const AttentionArgs& args,
                                                const AttentionLaunch& launch) {
  Status status = narrow::launch<T, kHeadDim>(args, launch.num_processors, launch.stream);
  if (!status || args.counts.num_wide == 0) return status;
  if constexpr (kHasHopper<T, kHeadDim>) {
    if (uses_wgmma(args, launch.wgmma)) {
      return hopper::launch<T>(args, launch.num_processors, launch.stream);
    }
  }
  return wide::launch<T, kHeadDim>(args, launch);
}

}  // namespace anyslot::cuda
