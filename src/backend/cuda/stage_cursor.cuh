#pragma once

#include <cstdint>

#include "backend/cuda/attention_device.cuh"

namespace anyslot::cuda {

/// Stages of an item's ranges; none holds pages of two ranges. kHold: the range is kept in
/// registers, not read again wherever it is needed.
template <int kPages, bool kHold>
class StageCursor {
 public:
  __device__ StageCursor(const AttentionArgs& args, const WorkItem& item)
      : ranges_(args.ranges), index_(item.range_begin), end_(item.range_end) {
    enter();
  }
  __device__ bool done() const { return index_ >= end_; }
  __device__ int range_index() const { return index_; }
  __device__ const DeviceRange& range() const {
    if constexpr (kHold) {
      return held_;
    } else {
      return ranges_[index_];
    }
  }
  __device__ int first_token() const { return token_; }
  __device__ int num_pages() const {
    return min(kPages, (range().end - token_ + kBlockSize - 1) / kBlockSize);
  }
  __device__ void next() {
    token_ += kPages * kBlockSize;
    if (token_ < range().end) return;
    ++index_;
    enter();
  }

 private:
  __device__ void enter() {
    if (index_ >= end_) return;
    if constexpr (kHold) held_ = ranges_[index_];
    token_ = range().begin / kBlockSize * kBlockSize;
  }

  const DeviceRange* ranges_;
  int index_;
  int end_;
  int token_ = 0;
  DeviceRange held_;
};

}  // namespace anyslot::cuda
