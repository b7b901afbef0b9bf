#pragma once

#include <algorithm>

#include "backend/cuda/cuda_check.h"
#include "backend/cuda/stage_cursor.cuh"
#include "backend/cuda/tensor_core.cuh"
#include "backend/cuda/wgmma.cuh"

// Many rows on sm_90a, heads of 128: a warp group copies pages, two others of 64 rows x heads each
// multiply. While the tensor cores multiply the weights of one stage by its V, they already have
// the next stage's scores, and the warps make those into weights.

namespace anyslot::cuda::hopper {

inline constexpr int kHeadDim = 128;
inline constexpr int kStageTokens = kHopperStageTokens;
inline constexpr int kStagePages = kStageTokens / kBlockSize;
inline constexpr int kStages = 3;
inline constexpr int kGroupThreads = 128;
inline constexpr int kConsumers = 2;  // warp groups that multiply
inline constexpr int kThreads = kGroupThreads * (1 + kConsumers);
inline constexpr int kGroupRows = 64;
inline constexpr int kRows = kConsumers * kGroupRows;
// Registers of a thread: 168 on average are all there are.
inline constexpr int kCopierRegisters = 40;
inline constexpr int kConsumerRegisters = 232;

// K and V of a stage are (128 tokens, 128 elements) each, in two halves of 64 elements: rows of 128
// bytes with the 128-byte swizzle.
inline constexpr uint32_t kRowBytes = 128;
inline constexpr uint32_t kHalfBytes = kStageTokens * kRowBytes;
inline constexpr uint32_t kMatrixBytes = 2 * kHalfBytes;
inline constexpr uint32_t kStageBytes = 2 * kMatrixBytes;
inline constexpr uint32_t kAlignment = 1024;  // of the swizzle
inline constexpr uint32_t kBarrierBytes = 2 * kStages * sizeof(uint64_t);
inline constexpr uint32_t kSharedBytes = kStages * kStageBytes + kBarrierBytes + kAlignment;

using Cursor = StageCursor<kStagePages, true>;

#if ANYSLOT_HAS_WGMMA

/// Where stages and their barriers lie in shared memory, and which stage of the ring is next.
class Ring {
 public:
  __device__ explicit Ring(uint32_t shared) : stages_(shared) {}
  __device__ void init() const {
    for (int i = 0; i < kStages; ++i) {
      init_barrier(full(i), kGroupThreads);
      init_barrier(empty(i), kConsumers * kGroupThreads / 32);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __device__ uint32_t stage() const { return stages_ + index_ * kStageBytes; }
  __device__ void wait_full() const { wait_for_phase(full(index_), phase_); }
  /// The first round finds all stages empty.
  __device__ void wait_empty() const { wait_for_phase(empty(index_), phase_ ^ 1); }
  __device__ void fill() const { arrive_with_copies(full(index_)); }
  __device__ void free() const {
    if (threadIdx.x % 32 == 0) arrive(empty(index_));
  }
  __device__ void next() {
    if (++index_ < kStages) return;
    index_ = 0;
    phase_ ^= 1;
  }

 private:
  __device__ uint32_t full(int i) const { return stages_ + kStages * kStageBytes + 8 * i; }
  __device__ uint32_t empty(int i) const { return full(i) + 8 * kStages; }

  uint32_t stages_;
  int index_ = 0;
  int phase_ = 0;
};

template <typename T>
__device__ void copy_stage(const AttentionArgs& args, const Cursor& cursor, int kv_head,
                           uint32_t to) {
  const auto place_of = [to](int page, int token, int column) {
    return to + column / 8 * kHalfBytes + (page * kBlockSize + token) * kRowBytes +
           (column ^ token) % 8 * 16;
  };
  copy_pages<T, kHeadDim, kStagePages, kGroupThreads, true>(
      args, cursor, kv_head, static_cast<int>(threadIdx.x) % kGroupThreads, place_of, kMatrixBytes);
}

/// Rows of a warp as they meet a range, in registers.
template <typename T>
__device__ inline void turn_rows(const AttentionArgs& args, const DeviceRange& range,
                                 const LaneRows& rows, uint32_t (&q)[kHeadDim / 16][4]) {
  const auto quad_of = [&rows](int step, int h, int i) {
    QuadOfQ x{};
    if (rows.q[i] == nullptr) return x;
    const int c = quad_column(step, h);
    x = {*reinterpret_cast<const float2*>(rows.q[i] + c),
         *reinterpret_cast<const float2*>(rows.q[i] + c + kHeadDim / 2)};
    return turned(x, turns_at(rows.rotation[i], c));
  };
  const auto store = [&q](int step, int h, int i, uint32_t low, uint32_t high) {
    q[step][i + 2 * h] = low;
    q[step + kHeadDim / 32][i + 2 * h] = high;
  };
  turn_q<T, kHeadDim, 2>(find_turns<kHeadDim>(args, range, rows), quad_of, store);
}

/// s = q K of a stage, in the background.
template <typename T>
__device__ inline void score_keys(const uint32_t (&q)[kHeadDim / 16][4], uint32_t k,
                                  float (&s)[16][4]) {
#pragma unroll
  for (int step = 0; step < kHeadDim / 16; ++step) {
    const uint32_t at = k + step / 4 * kHalfBytes + step % 4 * 32;
    multiply_group<T, false>(s, q[step], matrix_descriptor(at, 16), step > 0);
  }
  commit_products();
}

/// out += p V of a stage, in the background.
template <typename T>
__device__ inline void add_values(const uint32_t (&p)[kStagePages][4], uint32_t v,
                                  float (&out)[16][4]) {
#pragma unroll
  for (int page = 0; page < kStagePages; ++page) {
    const uint32_t at = v + page * kBlockSize * kRowBytes;
    multiply_group<T, true>(out, p[page], matrix_descriptor(at, kHalfBytes), 1);
  }
  commit_products();
}

/// What a consumer knows of the range that its rows have met last.
struct Meeting {
  int range = -1;
  LaneMask mask;
};

template <typename T>
__device__ inline void meet_range(const AttentionArgs& args, const Cursor& cursor,
                                  const LaneRows& rows, Meeting& meeting,
                                  uint32_t (&q)[kHeadDim / 16][4]) {
  if (cursor.range_index() == meeting.range) return;
  meeting.range = cursor.range_index();
  turn_rows<T>(args, cursor.range(), rows, q);
  meeting.mask = make_mask(args, cursor.range(), rows);
}

template <typename T>
__device__ inline float2 weigh_stage(const AttentionArgs& args, const Cursor& cursor,
                                     const LaneMask& mask, float (&s)[16][4],
                                     TileState<kHeadDim>& state) {
  const int token = cursor.first_token();
  if (!all_visible(args, cursor.range(), token, token + kStageTokens)) hide_keys(s, token, mask);
  return weights_of(s, args.scale_log2, state.maximum, state.sum);
}

template <typename T>
__device__ inline void pack_stage(const float (&s)[16][4], uint32_t (&p)[kStagePages][4]) {
#pragma unroll
  for (int page = 0; page < kStagePages; ++page) {
    pack_weights<T>(s[2 * page], s[2 * page + 1], p[page]);
  }
}

/// The consumers hand products to the tensor cores in turns: while one's are done, the other makes
/// scores into weights.
__device__ inline void take_turn(int consumer) {
  asm volatile("bar.sync %0, %1;" ::"r"(1 + consumer), "n"(kConsumers * kGroupThreads) : "memory");
}
__device__ inline void give_turn(int consumer) {
  asm volatile("bar.arrive %0, %1;" ::"r"(2 - consumer), "n"(kConsumers * kGroupThreads)
               : "memory");
}

/// Waits until the stage is there and the tensor cores are this consumer's; Q is turned by then.
template <typename T>
__device__ inline void meet_stage(const AttentionArgs& args, const Cursor& cursor,
                                  const LaneRows& rows, const Ring& ring, int consumer,
                                  Meeting& meeting, uint32_t (&q)[kHeadDim / 16][4]) {
  meet_range<T>(args, cursor, rows, meeting, q);
  ring.wait_full();
  show_to_products();
  take_turn(consumer);
  begin_products();
}

/// One unit's stages for the 64 rows of a warp group.
template <typename T>
__device__ void attend(const AttentionArgs& args, const WorkItem& item, const LaneRows& rows,
                       Ring& ring, int consumer, TileState<kHeadDim>& state) {
  Cursor cursor(args, item);
  Meeting meeting;
  uint32_t q[kHeadDim / 16][4];
  uint32_t p[kStagePages][4];
  float s[16][4];
  meet_stage<T>(args, cursor, rows, ring, consumer, meeting, q);
  score_keys<T>(q, ring.stage(), s);
  give_turn(consumer);
  wait_for_products<0>();
  weigh_stage<T>(args, cursor, meeting.mask, s, state);
  pack_stage<T>(s, p);
  for (cursor.next(); !cursor.done(); cursor.next()) {
    const Ring before = ring;
    ring.next();
    meet_stage<T>(args, cursor, rows, ring, consumer, meeting, q);
    score_keys<T>(q, ring.stage(), s);
    add_values<T>(p, before.stage() + kMatrixBytes, state.out);
    give_turn(consumer);
    wait_for_products<1>();
    const float2 keep = weigh_stage<T>(args, cursor, meeting.mask, s, state);
    wait_for_products<0>();
    before.free();
    keep_outputs<kHeadDim>(keep, state.out);
    pack_stage<T>(s, p);
  }
  begin_products();
  add_values<T>(p, ring.stage() + kMatrixBytes, state.out);
  wait_for_products<0>();
  ring.free();
  ring.next();
}

/// Lets a unit's stages pass.
__device__ inline void let_pass(const AttentionArgs& args, const WorkItem& item, Ring& ring,
                                int consumer) {
  for (Cursor cursor(args, item); !cursor.done(); cursor.next()) {
    ring.wait_full();
    take_turn(consumer);
    give_turn(consumer);
    ring.free();
    ring.next();
  }
}

/// A unit: 128 rows x heads of an item, one kv head.
struct Unit {
  WorkItem item;
  int kv_head;
  int first_row;
  int num_rows;  // of the item, from 0
};

/// Calls work(unit) for each unit of the block.
template <typename Work>
__device__ inline void for_each_unit(const AttentionArgs& args, const Work& work) {
  const int group = args.num_heads / args.num_kv_heads;
  const PlanCounts counts = counts_of(args);
  const int tiles_per_item = (counts.max_rows * group + kRows - 1) / kRows;
  const int units = counts.num_wide * tiles_per_item * args.num_kv_heads;
  for (int w = blockIdx.x; w < units; w += gridDim.x) {
    Unit unit;
    unit.kv_head = w % args.num_kv_heads;
    unit.item = args.items[counts.num_narrow + w / args.num_kv_heads / tiles_per_item];
    unit.first_row = w / args.num_kv_heads % tiles_per_item * kRows;
    unit.num_rows = (unit.item.row_end - unit.item.row_begin) * group;
    if (unit.first_row < unit.num_rows) work(unit);
  }
}

template <typename T>
__device__ void copy_units(const AttentionArgs& args, Ring ring) {
  for_each_unit(args, [&](const Unit& unit) {
    for (Cursor cursor(args, unit.item); !cursor.done(); cursor.next()) {
      ring.wait_empty();
      copy_stage<T>(args, cursor, unit.kv_head, ring.stage());
      ring.fill();
      ring.next();
    }
  });
  wait_for_copies<0>();
}

template <typename T>
__device__ void attend_rows(const AttentionArgs& args, Ring ring, int consumer) {
  const int warp = static_cast<int>(threadIdx.x) % kGroupThreads / 32;
  if (consumer == 1) give_turn(consumer);  // the other one is the first
  for_each_unit(args, [&](const Unit& unit) {
    const int group_row = unit.first_row + consumer * kGroupRows;
    if (group_row >= unit.num_rows) return let_pass(args, unit.item, ring, consumer);
    const LaneRows rows = find_rows<kHeadDim>(args, unit.item, unit.kv_head, group_row + warp * 16);
    TileState<kHeadDim> state;
    if (unit.item.range_begin < unit.item.range_end) {
      attend<T>(args, unit.item, rows, ring, consumer, state);
    }
    finish_sums(state);
    write_rows<T, kHeadDim>(args, unit.item, unit.kv_head, rows, state);
  });
}

#endif  // ANYSLOT_HAS_WGMMA

template <typename T>
__global__ void __launch_bounds__(kThreads, 1) hopper_attention(AttentionArgs args) {
#if ANYSLOT_HAS_WGMMA
  extern __shared__ char shared[];
  const Ring ring((shared_address(shared) + kAlignment - 1) / kAlignment * kAlignment);
  if (threadIdx.x == 0) ring.init();
  __syncthreads();
  let_merge_start();
  // Of the warp, as the compiler sees, so that products are in no divergent branch.
  const int warp_group = __shfl_sync(0xffffffffU, threadIdx.x / kGroupThreads, 0);
  if (warp_group == 0) {
    give_registers<kCopierRegisters>();
    copy_units<T>(args, ring);
  } else {
    take_registers<kConsumerRegisters>();
    attend_rows<T>(args, ring, warp_group - 1);
  }
#endif
}

template <typename T>
Status prepare() {
  return cuda_status(
      cudaFuncSetAttribute(hopper_attention<T>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                           kSharedBytes),
      "shared memory of attention");
}

template <typename T>
Status launch(const AttentionArgs& args, int num_processors, cudaStream_t stream) {
  const int rows = args.counts.max_rows * (args.num_heads / args.num_kv_heads);
  const int units = args.counts.num_wide * ((rows + kRows - 1) / kRows) * args.num_kv_heads;
  const int blocks =
      args.recorded_counts == nullptr ? std::min(units, num_processors) : num_processors;
  hopper_attention<T><<<blocks, kThreads, kSharedBytes, stream>>>(args);
  return launch_status("attention");
}

}  // namespace anyslot::cuda::hopper
