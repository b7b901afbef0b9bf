#include <algorithm>

#include "backend/cuda/cuda_check.h"
#include "backend/cuda/tensor_core.cuh"

// Many rows: bound by the tensor cores. Each warp has 16 rows x heads of its own; all warps of a
// block read the same pages.

namespace anyslot::cuda {

namespace {

constexpr int kStagePages = 4;

// Tiles: kWarps warps of a block, kStages stages in flight, kBlocks blocks to a multiprocessor.

template <int kHeadDim>
constexpr int kStageBytes = kStagePages * 2 * kPageBytes<kHeadDim>;

/// Stages of an item's ranges; none holds pages of two ranges.
class StageCursor {
 public:
  __device__ StageCursor(const AttentionArgs& args, const WorkItem& item)
      : args_(args), index_(item.range_begin), end_(item.range_end) {
    enter();
  }
  __device__ bool done() const { return index_ >= end_; }
  __device__ int range_index() const { return index_; }
  __device__ const DeviceRange& range() const { return range_; }
  __device__ int first_token() const { return token_; }
  __device__ int num_pages() const {
    return min(kStagePages, (range_.end - token_ + kBlockSize - 1) / kBlockSize);
  }
  __device__ void next() {
    token_ += kStagePages * kBlockSize;
    if (token_ < range_.end) return;
    ++index_;
    enter();
  }

 private:
  __device__ void enter() {
    if (index_ >= end_) return;
    range_ = args_.ranges[index_];
    token_ = range_.begin / kBlockSize * kBlockSize;
  }

  const AttentionArgs& args_;
  int index_;
  int end_;
  int token_ = 0;
  DeviceRange range_;
};

/// Copies the cursor's pages: each K, then V. Tokens that no row sees become zeros.
template <int kHeadDim, int kThreads>
__device__ void copy_stage(const AttentionArgs& args, const StageCursor& cursor, int kv_head,
                           uint32_t to) {
  constexpr int kChunks = kHeadDim / 8;
  constexpr int kPageChunks = kBlockSize * kChunks;
  const int32_t* blocks = args.blocks + cursor.range().blocks + cursor.first_token() / kBlockSize;
  const int num_pages = cursor.num_pages();
  const int first = cursor.range().begin - cursor.first_token();
  const int end = cursor.range().end - cursor.first_token();
#pragma unroll
  for (int i = 0; i < kStagePages * kPageChunks / kThreads; ++i) {
    const int index = i * kThreads + static_cast<int>(threadIdx.x);
    const int page = index / kPageChunks;
    if (page >= num_pages) continue;
    const int chunk = index % kPageChunks;
    const int token = chunk / kChunks;
    const bool valid = page * kBlockSize + token >= first && page * kBlockSize + token < end;
    const bf16* key = key_page<bf16>(args, __ldg(blocks + page), kv_head) + chunk * 8;
    const uint32_t place =
        to + page * 2 * kPageBytes<kHeadDim> + chunk_offset<kHeadDim>(token, chunk % kChunks);
    copy_async(place, key, valid);
    copy_async(place + kPageBytes<kHeadDim>, key + value_offset(args), valid);
  }
}

template <int kHeadDim, int kWarps, int kStages>
__device__ void walk_stages(const AttentionArgs& args, const WorkItem& item, int kv_head,
                            const LaneRows& rows, uint32_t shared, TileState<kHeadDim>& state) {
  constexpr int kThreads = kWarps * 32;
  constexpr int kPage = kPageBytes<kHeadDim>;
  StageCursor ahead(args, item);
  StageCursor cursor = ahead;
  for (int i = 0; i < kStages - 1; ++i) {
    if (!ahead.done()) {
      copy_stage<kHeadDim, kThreads>(args, ahead, kv_head, shared + i * kStageBytes<kHeadDim>);
      ahead.next();
    }
    commit_copies();
  }
  uint32_t q[kHeadDim / 16][4];
  LaneMask mask;
  int turned_for = -1;
  int stage = 0;
  while (!cursor.done()) {
    const DeviceRange& range = cursor.range();
    if (cursor.range_index() != turned_for) {
      turned_for = cursor.range_index();
      load_turned_q<kHeadDim>(args, range, rows, q);
      mask = make_mask(args, range, rows);
    }
    wait_for_copies<kStages - 2>();
    __syncthreads();  // the stage has arrived, and all have left the one before it
    if (!ahead.done()) {
      const int free_stage = stage == 0 ? kStages - 1 : stage - 1;
      copy_stage<kHeadDim, kThreads>(args, ahead, kv_head,
                                     shared + free_stage * kStageBytes<kHeadDim>);
      ahead.next();
    }
    commit_copies();
    const int token = cursor.first_token();
    const int num_pages = cursor.num_pages();
    const uint32_t k = shared + stage * kStageBytes<kHeadDim>;
    const bool masked = !all_visible(args, range, token, token + num_pages * kBlockSize);
    attend_pages<kHeadDim, kStagePages, 2 * kPage>(q, k, k + kPage, num_pages, token, masked, mask,
                                                   args.scale_log2, state);
    cursor.next();
    stage = stage + 1 == kStages ? 0 : stage + 1;
  }
  wait_for_copies<0>();
  __syncthreads();  // before the next item's pages arrive
}

template <int kHeadDim>
__device__ void write_rows(const AttentionArgs& args, const WorkItem& item, int kv_head,
                           const LaneRows& rows, const TileState<kHeadDim>& state) {
  const int t = threadIdx.x % 4;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    if (rows.q[i] == nullptr) continue;
    const int output_row = args.output_rows[item.row_begin + rows.r[i]];
    const int head = static_cast<int>(rows.q[i] - (args.q + output_row * args.q_stride)) / kHeadDim;
    if (item.partial >= 0) {
      const int64_t slot = (int64_t{item.partial} + rows.r[i]) * args.num_heads + head;
      float* result = args.partial_out + slot * kHeadDim + 2 * t;
#pragma unroll
      for (int n = 0; n < kHeadDim / 8; ++n) {
        *reinterpret_cast<float2*>(result + n * 8) = {state.out[n][2 * i], state.out[n][2 * i + 1]};
      }
      if (t == 0) args.partial_state[slot] = {state.maximum[i], state.sum[i]};
    } else {
      const float factor = state.sum[i] > 0.0F ? 1.0F / state.sum[i] : 0.0F;
      bf16* result =
          static_cast<bf16*>(args.out) + output_row * args.out_stride + head * kHeadDim + 2 * t;
#pragma unroll
      for (int n = 0; n < kHeadDim / 8; ++n) {
        *reinterpret_cast<uint32_t*>(result + n * 8) =
            pack(state.out[n][2 * i] * factor, state.out[n][2 * i + 1] * factor);
      }
    }
  }
}

template <int kHeadDim, int kWarps, int kStages, int kBlocks>
__global__ void __launch_bounds__(kWarps * 32, kBlocks)
    wide_attention(AttentionArgs args, int tiles_per_item) {
  extern __shared__ __align__(128) char shared[];
  const int group = args.num_heads / args.num_kv_heads;
  const int units = args.num_items * tiles_per_item * args.num_kv_heads;
  for (int w = blockIdx.x; w < units; w += gridDim.x) {
    const int kv_head = w % args.num_kv_heads;
    const WorkItem item = args.items[w / args.num_kv_heads / tiles_per_item];
    const int first_row = w / args.num_kv_heads % tiles_per_item * kWarps * 16;
    if (first_row >= (item.row_end - item.row_begin) * group) continue;
    const LaneRows rows =
        find_rows<kHeadDim>(args, item, kv_head, first_row + threadIdx.x / 32 * 16);
    TileState<kHeadDim> state;
    walk_stages<kHeadDim, kWarps, kStages>(args, item, kv_head, rows, shared_address(shared),
                                           state);
    finish_sums(state);
    write_rows<kHeadDim>(args, item, kv_head, rows, state);
  }
}

template <int kHeadDim, int kWarps, int kStages, int kBlocks>
Status launch(const AttentionArgs& args, int num_processors, cudaStream_t stream) {
  constexpr int kBytes = kStages * kStageBytes<kHeadDim>;
  if (Status status =
          cuda_status(cudaFuncSetAttribute(wide_attention<kHeadDim, kWarps, kStages, kBlocks>,
                                           cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes),
                      "shared memory of attention");
      !status) {
    return status;
  }
  const int rows = args.max_rows * (args.num_heads / args.num_kv_heads);
  const int tiles_per_item = (rows + kWarps * 16 - 1) / (kWarps * 16);
  const int units = args.num_items * tiles_per_item * args.num_kv_heads;
  const int blocks = std::min(units, kBlocks * num_processors);
  wide_attention<kHeadDim, kWarps, kStages, kBlocks>
      <<<blocks, kWarps * 32, kBytes, stream>>>(args, tiles_per_item);
  return launch_status("wide attention");
}

}  // namespace

Status launch_wide_attention(const AttentionArgs& args, int num_processors, cudaStream_t stream) {
  if (args.num_items == 0) return {};
  const bool large = args.max_rows * (args.num_heads / args.num_kv_heads) > 64;
  // 64 rows x heads: several blocks hide each other's waiting. 128: half as much is read from the
  // cache per row.
  if (args.head_dim == 64) {
    return large ? launch<64, 8, 3, 1>(args, num_processors, stream)
                 : launch<64, 4, 2, 3>(args, num_processors, stream);
  }
  return large ? launch<128, 8, 3, 1>(args, num_processors, stream)
               : launch<128, 4, 3, 2>(args, num_processors, stream);
}

}  // namespace anyslot::cuda
