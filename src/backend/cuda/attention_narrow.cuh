#pragma once

#include <algorithm>

#include "backend/cuda/cuda_check.h"
#include "backend/cuda/tensor_core.cuh"

// Few rows over long contexts: bound by reading K and V. All warps of a block have the same 16
// rows x heads; each walks every kWarps-th page with copies of its own in flight, so no warp waits
// for another until the end.

namespace anyslot::cuda::narrow {

inline constexpr int kWarps = 4;
/// Pages per warp; two blocks fit a multiprocessor of 227 KiB.
template <typename T>
inline constexpr int kStages = 6 / static_cast<int>(sizeof(T));

template <typename T, int kHeadDim>
inline constexpr int kSharedBytes =
    kWarps* kStages<T> * 2 * kPageBytes<T, kHeadDim> + kKeptBytes<kHeadDim>;

/// The pages of an item that one warp reads, in order.
class PageCursor {
 public:
  __device__ PageCursor(const AttentionArgs& args, const WorkItem& item, int warp)
      : args_(args), index_(item.range_begin), end_(item.range_end), page_(warp) {
    if (index_ < end_) range_ = args_.ranges[index_];
    settle();
  }
  __device__ bool done() const { return index_ >= end_; }
  __device__ int range_index() const { return index_; }
  __device__ const DeviceRange& range() const { return range_; }
  __device__ int first_token() const { return (range_.begin / kBlockSize + page_) * kBlockSize; }
  __device__ int block() const { return block_; }
  __device__ void next() {
    page_ += kWarps;
    settle();
  }

 private:
  __device__ int num_pages() const {
    return (range_.end + kBlockSize - 1) / kBlockSize - range_.begin / kBlockSize;
  }
  __device__ void settle() {
    while (index_ < end_ && page_ >= num_pages()) {
      page_ -= num_pages();
      if (++index_ < end_) range_ = args_.ranges[index_];
    }
    if (index_ < end_) block_ = args_.blocks[range_.blocks + first_token() / kBlockSize];
  }

  const AttentionArgs& args_;
  int index_;
  int end_;
  int page_;
  int block_ = 0;  // loaded early: its latency passes while a page is computed
  DeviceRange range_;
};

/// Copies the cursor's page to the stage at `to`: K, then V. Tokens that no row sees become zeros.
template <typename T, int kHeadDim>
__device__ void copy_page(const AttentionArgs& args, const PageCursor& cursor, int kv_head,
                          uint32_t to) {
  constexpr int kChunks = kRowChunks<T, kHeadDim>;
  constexpr int kElements = kHeadDim / kChunks;
  const T* key = key_page<T>(args, cursor.block(), kv_head);
  const T* value = key + value_offset(args);
  const int first = cursor.range().begin - cursor.first_token();
  const int end = cursor.range().end - cursor.first_token();
#pragma unroll
  for (int i = 0; i < kBlockSize * kChunks / 32; ++i) {
    const int chunk = i * 32 + static_cast<int>(threadIdx.x % 32);
    const int token = chunk / kChunks;
    const bool valid = token >= first && token < end;
    const uint32_t place = to + chunk_offset<T, kHeadDim>(token, chunk % kChunks);
    copy_async(place, key + chunk * kElements, valid);
    copy_async(place + kPageBytes<T, kHeadDim>, value + chunk * kElements, valid);
  }
}

template <typename T, int kHeadDim>
__device__ void walk_pages(const AttentionArgs& args, const WorkItem& item, int kv_head,
                           uint32_t stages, QuadOfQ* kept_q, TileState<kHeadDim> (&state)[1]) {
  constexpr int kPage = kPageBytes<T, kHeadDim>;
  constexpr int kOwnStages = kStages<T>;
  const int warp = threadIdx.x / 32;
  const LaneRows rows = find_rows<kHeadDim>(args, item, kv_head, 0);
  PageCursor ahead(args, item, warp);
  PageCursor cursor = ahead;
  for (int i = 0; i < kOwnStages - 1; ++i) {
    if (!ahead.done()) {
      copy_page<T, kHeadDim>(args, ahead, kv_head, stages + i * 2 * kPage);
      ahead.next();
    }
    commit_copies();
  }
  keep_q<T, kHeadDim, kWarps>(rows, warp, kept_q);
  __syncthreads();
  uint32_t q[kHeadDim / 16][4];
  LaneMask mask;
  int turned_for = -1;
  int stage = 0;
  while (!cursor.done()) {
    const DeviceRange& range = cursor.range();
    if (cursor.range_index() != turned_for) {
      turned_for = cursor.range_index();
      turn_kept_q<T, kHeadDim>(args, range, rows, kept_q, q);
      mask = make_mask(args, range, rows);
    }
    wait_for_copies<kOwnStages - 2>();
    __syncwarp();
    if (!ahead.done()) {
      const int free_stage = stage == 0 ? kOwnStages - 1 : stage - 1;
      copy_page<T, kHeadDim>(args, ahead, kv_head, stages + free_stage * 2 * kPage);
      ahead.next();
    }
    commit_copies();
    const int token = cursor.first_token();
    const uint32_t k = stages + stage * 2 * kPage;
    if (range.key_rotation >= 0) {
      turn_keys<T, kHeadDim, 1, 32>(block_rotations<kHeadDim>(args, range, token),
                                    args.turn_rotations, range.end - token, k);
      __syncwarp();
    }
    const auto load_q = [&q](int step, int, uint32_t(&fragment)[4]) {
#pragma unroll
      for (int e = 0; e < 4; ++e) fragment[e] = q[step][e];
    };
    const auto mask_of = [&mask](int) { return mask; };
    attend_pages<T, kHeadDim, 1, 1, kPage>(load_q, k, k + kPage, token,
                                           !all_visible(args, range, token, token + kBlockSize),
                                           mask_of, args.scale_log2, state);
    cursor.next();
    stage = stage + 1 == kOwnStages ? 0 : stage + 1;
  }
  wait_for_copies<0>();
}

/// Merges the warps through shared memory and writes the item's rows.
template <typename T, int kHeadDim>
__device__ void write_rows(const AttentionArgs& args, const WorkItem& item, int kv_head,
                           float* outs, const TileState<kHeadDim>& state) {
  __shared__ float maxima[kWarps][16];
  __shared__ float sums[kWarps][16];
  const int warp = threadIdx.x / 32;
  const int g = threadIdx.x % 32 / 4;
  __syncthreads();  // the stages are free now
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    float* row = outs + (warp * 16 + g + 8 * i) * kHeadDim;
    for_each_output<T, kHeadDim>(state.out, i, [row](int column, float low, float high) {
      *reinterpret_cast<float2*>(row + column) = {low, high};
    });
    if (threadIdx.x % 4 == 0) {
      maxima[warp][g + 8 * i] = state.maximum[i];
      sums[warp][g + 8 * i] = state.sum[i];
    }
  }
  __syncthreads();
  const int group = args.num_heads / args.num_kv_heads;
  const int count = (item.row_end - item.row_begin) * group;
  for (int i = threadIdx.x; i < count * kHeadDim; i += blockDim.x) {
    const int m = i / kHeadDim;
    const int d = i % kHeadDim;
    float maximum = -INFINITY;
    for (int w = 0; w < kWarps; ++w) maximum = fmaxf(maximum, maxima[w][m]);
    float sum = 0.0F;
    float out = 0.0F;
    for (int w = 0; w < kWarps; ++w) {
      if (maxima[w][m] == -INFINITY) continue;
      const float weight = exp2_fast(maxima[w][m] - maximum);
      sum += weight * sums[w][m];
      out += weight * outs[(w * 16 + m) * kHeadDim + d];
    }
    const int head = kv_head * group + m % group;
    if (item.partial >= 0) {
      const int64_t slot = (int64_t{item.partial} + m / group) * args.num_heads + head;
      args.partial_out[slot * kHeadDim + d] = out;
      if (d == 0) args.partial_state[slot] = {maximum, sum};
    } else {
      const int64_t row = args.output_rows[item.row_begin + m / group];
      store_output<T>(args, row * args.out_stride + head * kHeadDim + d,
                      sum > 0.0F ? out / sum : 0.0F);
    }
  }
  __syncthreads();  // before the next item's pages arrive
}

template <typename T, int kHeadDim>
__global__ void __launch_bounds__(kWarps * 32, 2) narrow_attention(AttentionArgs args) {
  extern __shared__ __align__(128) char shared[];
  let_merge_start();
  const uint32_t stages =
      shared_address(shared) + threadIdx.x / 32 * kStages<T> * 2 * kPageBytes<T, kHeadDim>;
  auto* kept_q =
      reinterpret_cast<QuadOfQ*>(shared + kSharedBytes<T, kHeadDim> - kKeptBytes<kHeadDim>);
  const int units = counts_of(args).num_narrow * args.num_kv_heads;
  for (int w = blockIdx.x; w < units; w += gridDim.x) {
    const WorkItem item = args.items[w / args.num_kv_heads];
    const int kv_head = w % args.num_kv_heads;
    TileState<kHeadDim> state[1];
    walk_pages<T, kHeadDim>(args, item, kv_head, stages, kept_q, state);
    finish_sums(state[0]);
    write_rows<T, kHeadDim>(args, item, kv_head, reinterpret_cast<float*>(shared), state[0]);
  }
}

template <typename T, int kHeadDim>
Status prepare() {
  return cuda_status(
      cudaFuncSetAttribute(narrow_attention<T, kHeadDim>,
                           cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes<T, kHeadDim>),
      "shared memory of attention");
}

template <typename T, int kHeadDim>
Status launch(const AttentionArgs& args, int num_processors, cudaStream_t stream) {
  if (args.counts.num_narrow == 0) return {};
  const int units = args.counts.num_narrow * args.num_kv_heads;
  const int most = 2 * num_processors;
  const int blocks = args.recorded_counts == nullptr ? std::min(units, most) : most;
  narrow_attention<T, kHeadDim><<<blocks, kWarps * 32, kSharedBytes<T, kHeadDim>, stream>>>(args);
  return launch_status("narrow attention");
}

}  // namespace anyslot::cuda::narrow
