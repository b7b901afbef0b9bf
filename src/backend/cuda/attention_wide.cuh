#pragma once

#include <algorithm>

#include "backend/cuda/cuda_check.h"
#include "backend/cuda/stage_cursor.cuh"
#include "backend/cuda/tensor_core.cuh"

// Many rows: bound by the tensor cores. Each warp has 16 rows x heads of its own; all warps of a
// block read the same pages.

namespace anyslot::cuda::wide {

inline constexpr int kStagePages = kWideStageTokens / kBlockSize;
/// Steps of Q that a warp of two tiles loads before it turns them: more would not fit the
/// registers.
inline constexpr int kTurnedAtOnce = 2;

// Instances: kTiles tiles of 16 rows per warp, kWarps warps of a block, kStages stages in flight,
// kBlocks blocks to a multiprocessor.

template <typename T, int kHeadDim>
inline constexpr int kStageBytes = kStagePages * 2 * kPageBytes<T, kHeadDim>;

/// Copies the cursor's pages in the background: each K, then V. What no row sees becomes zeros.
template <typename T, int kHeadDim, int kThreads, typename Cursor>
__device__ void copy_stage(const AttentionArgs& args, const Cursor& cursor, int kv_head,
                           uint32_t to) {
  constexpr int kChunks = kRowChunks<T, kHeadDim>;
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
    const T* key = key_page<T>(args, __ldg(blocks + page), kv_head) + chunk * (kHeadDim / kChunks);
    const uint32_t place =
        to + page * 2 * kPageBytes<T, kHeadDim> + chunk_offset<T, kHeadDim>(token, chunk % kChunks);
    copy_async(place, key, valid);
    copy_async(place + kPageBytes<T, kHeadDim>, key + value_offset(args), valid);
  }
}

/// Q as it meets a range, in the warp's own shared memory: (16 rows, kHeadDim), in chunks that lie
/// as those of a page of 16 bits. args.q is turned by the rows' positions.
template <typename T, int kHeadDim>
__device__ void store_turned_q(const AttentionArgs& args, const DeviceRange& range,
                               const LaneRows& rows, char* to) {
  constexpr int kHalfChunks = kHeadDim / 16;
  const auto quad_of = [&rows](int step, int h, int i) {
    QuadOfQ x{};
    if (rows.q[i] == nullptr) return x;
    const float* from = rows.q[i] + product_column<T, kHeadDim>(step, h);
    return QuadOfQ{*reinterpret_cast<const float2*>(from),
                   *reinterpret_cast<const float2*>(from + kHeadDim / 2)};
  };
  const int g = threadIdx.x % 32 / 4;
  const int t = threadIdx.x % 4;
  const auto store = [to, g, t](int step, int h, int i, uint32_t low, uint32_t high) {
    const int chunk = step * 2 + h;
    const uint32_t at = chunk_offset<Product<T>, kHeadDim>(g + i * 8, chunk) + 4 * t;
    const uint32_t at_high =
        chunk_offset<Product<T>, kHeadDim>(g + i * 8, chunk + kHalfChunks) + 4 * t;
    *reinterpret_cast<uint32_t*>(to + at) = low;
    *reinterpret_cast<uint32_t*>(to + at_high) = high;
  };
  turn_q<T, kHeadDim, kTurnedAtOnce>(find_turns<kHeadDim>(args, range, rows), quad_of, store);
}

template <typename T, int kHeadDim, int kTiles, int kWarps, int kStages>
__device__ void walk_stages(const AttentionArgs& args, const WorkItem& item, int kv_head,
                            int warp_row, char* shared, TileState<kHeadDim> (&states)[kTiles]) {
  constexpr int kThreads = kWarps * 32;
  constexpr int kPage = kPageBytes<T, kHeadDim>;
  constexpr int kTile = kPageBytes<Product<T>, kHeadDim>;  // of Q
  constexpr int kOwnBytes = kTiles == 1 ? kKeptBytes<kHeadDim> : kTiles * kTile;
  char* own_q = shared + kStages * kStageBytes<T, kHeadDim> + threadIdx.x / 32 * kOwnBytes;
  const uint32_t stages = shared_address(shared);
  const uint32_t q = shared_address(own_q);
  StageCursor<kStagePages, kTiles == 1> ahead(args, item);
  StageCursor<kStagePages, kTiles == 1> cursor = ahead;
  for (int i = 0; i < kStages - 1; ++i) {
    if (!ahead.done()) {
      copy_stage<T, kHeadDim, kThreads>(args, ahead, kv_head,
                                        stages + i * kStageBytes<T, kHeadDim>);
      ahead.next();
    }
    commit_copies();
  }
  const int lane = threadIdx.x % 32;
  uint32_t only_q[kHeadDim / 16][4];  // a warp with one tile has the registers to keep Q in
  LaneRows only_rows;
  LaneMask only_mask;
  if constexpr (kTiles == 1) {
    only_rows = find_rows<kHeadDim>(args, item, kv_head, warp_row);
    keep_q<T, kHeadDim, 1>(only_rows, 0, reinterpret_cast<QuadOfQ*>(own_q));
  }
  const auto load_q = [&only_q, q, lane](int step, int tile, uint32_t(&fragment)[4]) {
    if constexpr (kTiles == 1) {
#pragma unroll
      for (int e = 0; e < 4; ++e) fragment[e] = only_q[step][e];
    } else {
      load_matrices(
          fragment,
          q + tile * kTile + chunk_offset<Product<T>, kHeadDim>(lane % 16, step * 2 + lane / 16));
    }
  };
  int turned_for = -1;
  int stage = 0;
  while (!cursor.done()) {
    const DeviceRange& range = cursor.range();
    if (cursor.range_index() != turned_for) {
      turned_for = cursor.range_index();
      __syncwarp();  // all lanes have left the Q before
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
        if constexpr (kTiles == 1) {
          turn_kept_q<T, kHeadDim>(args, range, only_rows, reinterpret_cast<const QuadOfQ*>(own_q),
                                   only_q);
          only_mask = make_mask(args, range, only_rows);
        } else {
          const LaneRows rows = find_rows<kHeadDim>(args, item, kv_head, warp_row + tile * 16);
          store_turned_q<T, kHeadDim>(args, range, rows, own_q + tile * kTile);
        }
      }
    }
    wait_for_copies<kStages - 2>();
    __syncthreads();  // the stage has arrived, and all have left the one before it
    if (!ahead.done()) {
      const int free_stage = stage == 0 ? kStages - 1 : stage - 1;
      copy_stage<T, kHeadDim, kThreads>(args, ahead, kv_head,
                                        stages + free_stage * kStageBytes<T, kHeadDim>);
      ahead.next();
    }
    commit_copies();
    const int token = cursor.first_token();
    const int num_pages = cursor.num_pages();
    const bool masked = !all_visible(args, range, token, token + num_pages * kBlockSize);
    const uint32_t k = stages + stage * kStageBytes<T, kHeadDim>;
    if (range.key_rotation >= 0) {
      turn_keys<T, kHeadDim, kStagePages, kThreads>(block_rotations<kHeadDim>(args, range, token),
                                                    args.turn_rotations, range.end - token, k);
      __syncthreads();
    }
    const auto mask_of = [&](int tile) {
      if constexpr (kTiles == 1) return only_mask;
      return make_mask(args, cursor.range(),
                       find_rows<kHeadDim>(args, item, kv_head, warp_row + tile * 16));
    };
    if (num_pages == kStagePages) {
      attend_pages<T, kHeadDim, kTiles, kStagePages, 2 * kPage>(load_q, k, k + kPage, token, masked,
                                                                mask_of, args.scale_log2, states);
    } else {
#pragma unroll 1
      for (int page = 0; page < num_pages; ++page) {
        const uint32_t page_k = k + page * 2 * kPage;
        attend_pages<T, kHeadDim, kTiles, 1, 2 * kPage>(load_q, page_k, page_k + kPage,
                                                        token + page * kBlockSize, masked, mask_of,
                                                        args.scale_log2, states);
      }
    }
    cursor.next();
    stage = stage + 1 == kStages ? 0 : stage + 1;
  }
  wait_for_copies<0>();
  __syncthreads();  // before the next item's pages arrive
}

template <typename T, int kHeadDim, int kTiles, int kWarps, int kStages, int kBlocks>
__global__ void __launch_bounds__(kWarps * 32, kBlocks) wide_attention(AttentionArgs args) {
  extern __shared__ __align__(128) char shared[];
  const int group = args.num_heads / args.num_kv_heads;
  let_merge_start();
  const PlanCounts counts = counts_of(args);
  constexpr int kRows = kWarps * kTiles * 16;
  const int tiles_per_item = (counts.max_rows * group + kRows - 1) / kRows;
  const int units = counts.num_wide * tiles_per_item * args.num_kv_heads;
  for (int w = blockIdx.x; w < units; w += gridDim.x) {
    const int kv_head = w % args.num_kv_heads;
    const WorkItem item = args.items[counts.num_narrow + w / args.num_kv_heads / tiles_per_item];
    const int first_row = w / args.num_kv_heads % tiles_per_item * kWarps * kTiles * 16;
    if (first_row >= (item.row_end - item.row_begin) * group) continue;
    const int warp_row = first_row + static_cast<int>(threadIdx.x) / 32 * kTiles * 16;
    TileState<kHeadDim> states[kTiles];
    walk_stages<T, kHeadDim, kTiles, kWarps, kStages>(args, item, kv_head, warp_row, shared,
                                                      states);
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      finish_sums(states[tile]);
      const LaneRows rows = find_rows<kHeadDim>(args, item, kv_head, warp_row + tile * 16);
      write_rows<T, kHeadDim>(args, item, kv_head, rows, states[tile]);
    }
  }
}

template <typename T, int kHeadDim, int kTiles, int kWarps, int kStages, int kBlocks>
struct Instance {
  static_assert(kStagePages * kPageBytes<T, kHeadDim> % (kWarps * 32 * 16) == 0);
  static constexpr int kRows = kWarps * kTiles * 16;
  static constexpr int kQBytes =
      kWarps * (kTiles == 1 ? kKeptBytes<kHeadDim> : kTiles * kPageBytes<Product<T>, kHeadDim>);
  static constexpr int kBytes = kStages * kStageBytes<T, kHeadDim> + kQBytes;
  static constexpr auto kKernel = wide_attention<T, kHeadDim, kTiles, kWarps, kStages, kBlocks>;

  static Status prepare() {
    return cuda_status(
        cudaFuncSetAttribute(kKernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes),
        "shared memory of attention");
  }

  static Status launch(const AttentionArgs& args, int num_processors, cudaStream_t stream) {
    const int rows = args.counts.max_rows * (args.num_heads / args.num_kv_heads);
    const int units = args.counts.num_wide * ((rows + kRows - 1) / kRows) * args.num_kv_heads;
    const int most = kBlocks * num_processors;
    const int blocks = args.recorded_counts == nullptr ? std::min(units, most) : most;
    kKernel<<<blocks, kWarps * 32, kBytes, stream>>>(args);
    return launch_status("wide attention");
  }
};

// Where the items fill the machine twice over, two blocks of 4 warps per multiprocessor hide each
// other's waiting, and 32 rows per warp halve what is read from shared memory. Where there is one
// item per multiprocessor, 8 warps share it, and there is room for Q as float32 and for more
// stages, which hide the latency of memory that no second block hides.
template <typename T, int kHeadDim>
using Many = Instance<T, kHeadDim, 2, 4, 4 / sizeof(T), 2>;
template <typename T, int kHeadDim>
using Few = Instance<T, kHeadDim, 1, 8, 8 / sizeof(T), 1>;

template <typename T, int kHeadDim>
Status prepare() {
  Status status = Many<T, kHeadDim>::prepare();
  return status.ok() ? Few<T, kHeadDim>::prepare() : status;
}

template <typename T, int kHeadDim>
Status launch(AttentionArgs args, const AttentionLaunch& launch) {
  const int num_processors = launch.num_processors;
  if (!fills_machine(args.counts.num_wide, args.num_kv_heads, num_processors)) {
    return Few<T, kHeadDim>::launch(args, num_processors, launch.stream);
  }
  Status status = launch_position_q(args, launch.positioned, launch.stream);
  if (!status) return status;
  args.q = launch.positioned.q;
  args.q_stride = int64_t{args.num_heads} * args.head_dim;
  return Many<T, kHeadDim>::launch(args, num_processors, launch.stream);
}

}  // namespace anyslot::cuda::wide
