#pragma once

#include <cstdint>

#include "backend/cuda/attention_device.cuh"
#include "backend/cuda/mma.cuh"

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

/// Copies the cursor's pages in the background, K and V in chunks of 16 bytes: place_of(page,
/// token, column) gives where a chunk of K goes; V goes `value_distance` further. What no row sees
/// becomes zeros, and so do pages that are missing to a whole stage if kWhole. `thread` of
/// kThreads.
template <typename T, int kHeadDim, int kPages, int kThreads, bool kWhole, typename Cursor,
          typename PlaceOf>
__device__ inline void copy_pages(const AttentionArgs& args, const Cursor& cursor, int kv_head,
                                  int thread, const PlaceOf& place_of, uint32_t value_distance) {
  constexpr int kChunks = kHeadDim / 8;
  constexpr int kPageChunks = kBlockSize * kChunks;
  const int32_t* blocks = args.blocks + cursor.range().blocks + cursor.first_token() / kBlockSize;
  const int num_pages = cursor.num_pages();
  const int first = cursor.range().begin - cursor.first_token();
  const int end = cursor.range().end - cursor.first_token();
#pragma unroll(kWhole ? 4 : kPages* kPageChunks / kThreads)
  for (int i = 0; i < kPages * kPageChunks / kThreads; ++i) {
    const int index = i * kThreads + thread;
    const int page = index / kPageChunks;
    if (!kWhole && page >= num_pages) continue;
    const int chunk = index % kPageChunks;
    const int token = chunk / kChunks;
    const bool valid = page * kBlockSize + token >= first && page * kBlockSize + token < end;
    const int block = __ldg(blocks + (kWhole ? min(page, num_pages - 1) : page));
    const T* key = key_page<T>(args, block, kv_head) + chunk * 8;
    const uint32_t place = place_of(page, token, chunk % kChunks);
    copy_async(place, key, valid);
    copy_async(place + value_distance, key + value_offset(args), valid);
  }
}

}  // namespace anyslot::cuda
