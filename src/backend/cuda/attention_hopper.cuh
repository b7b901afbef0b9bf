#pragma once

#include <algorithm>

#include "backend/cuda/cuda_check.h"
#include "backend/cuda/page_maps.h"
#include "backend/cuda/stage_cursor.cuh"
#include "backend/cuda/tensor_core.cuh"
#include "backend/cuda/tma.cuh"
#include "backend/cuda/wgmma.cuh"

// Many rows on sm_90a, heads of 128: a warp group lets the tensor memory accelerator copy pages,
// two others of 64 rows x heads each multiply. While the tensor cores multiply the weights of one
// stage by its V, they already have the next stage's scores, and the warps make those into weights.

namespace anyslot::cuda::hopper {

inline constexpr int kHeadDim = PageMaps::kHeadDim;
inline constexpr int kStageTokens = kHopperStageTokens;
inline constexpr int kStagePages = kStageTokens / kBlockSize;
inline constexpr int kGroupThreads = 128;
inline constexpr int kConsumers = 2;  // warp groups that multiply
inline constexpr int kCopierWarps = kGroupThreads / 32;
inline constexpr int kThreads = kGroupThreads * (1 + kConsumers);
inline constexpr int kGroupRows = 64;
inline constexpr int kRows = kConsumers * kGroupRows;
// Registers of a thread: 168 on average are all there are.
inline constexpr int kCopierRegisters = 24;
inline constexpr int kConsumerRegisters = 240;

// K or V of a stage is (128 tokens, 128 elements), in two halves of 64 elements: rows of 128 bytes
// with the 128-byte swizzle. The ring holds both in the order in which they are used: K of the
// first stage, then K of the next before V of each.
inline constexpr uint32_t kRowBytes = 128;
inline constexpr uint32_t kBoxBytes = kBlockSize * kRowBytes;
inline constexpr uint32_t kHalfBytes = kStageTokens * kRowBytes;
inline constexpr uint32_t kMatrixBytes = 2 * kHalfBytes;
inline constexpr int kSlots = 5;
inline constexpr uint32_t kAlignment = 1024;  // of the swizzle
// Behind the ring: Q of all rows, turned by position; a full and an empty barrier for each slot.
inline constexpr uint32_t kRingBytes = kSlots * kMatrixBytes;
inline constexpr uint32_t kQBytes = kRows / 16 * kKeptBytes<kHeadDim>;
inline constexpr uint32_t kBarrierBytes = 2 * kSlots * sizeof(uint64_t);
inline constexpr uint32_t kSharedBytes = kRingBytes + kQBytes + kBarrierBytes + kAlignment;

using Cursor = StageCursor<kStagePages, true>;

#if ANYSLOT_HAS_WGMMA

/// Where slots and their barriers lie in shared memory, and which slot is next.
class Ring {
 public:
  __device__ explicit Ring(uint32_t shared) : shared_(shared) {}
  __device__ void init() const {
    for (int i = 0; i < kSlots; ++i) {
      init_barrier(full(i), kCopierWarps);
      init_barrier(empty(i), kConsumers * kGroupThreads / 32);
    }
    show_barriers();
  }
  __device__ uint32_t slot() const { return shared_ + index_ * kMatrixBytes; }
  __device__ uint32_t full() const { return full(index_); }
  __device__ void wait_full() const { wait_for_phase(full(index_), phase_); }
  /// The first round finds all slots empty.
  __device__ void wait_empty() const { wait_for_phase(empty(index_), phase_ ^ 1); }
  __device__ void free() const {
    if (threadIdx.x % 32 == 0) arrive(empty(index_));
  }
  __device__ void next() {
    if (++index_ < kSlots) return;
    index_ = 0;
    phase_ ^= 1;
  }
  /// The slot that is next; the ring goes on to the one after it.
  __device__ Ring take() {
    const Ring taken = *this;
    next();
    return taken;
  }

 private:
  __device__ uint32_t full(int i) const { return shared_ + kRingBytes + kQBytes + 8 * i; }
  __device__ uint32_t empty(int i) const { return full(i) + 8 * kSlots; }

  uint32_t shared_;
  int index_ = 0;
  int phase_ = 0;
};

/// A stage on its way to the ring: each copier warp has some of its pages, and each of some lanes
/// one half of a page.
class StageCopier {
 public:
  __device__ StageCopier(const AttentionArgs& args, int kv_head) : args_(args), kv_head_(kv_head) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    half_ = lane % 2;
    page_ = static_cast<int>(threadIdx.x) / 32 * kWarpPages + lane / 2;
    active_ = lane < 2 * kWarpPages;
  }
  /// Looks up where the cursor's pages are.
  __device__ void find(const Cursor& cursor) {
    const int token = cursor.first_token() + page_ * kBlockSize;
    tokens_ = min(cursor.range().end - token, kBlockSize);
    block_ = 0;
    if (active_ && tokens_ > 0) {
      block_ = __ldg(args_.blocks + cursor.range().blocks + token / kBlockSize);
    }
  }
  /// Fills the next slot with K or V. Tokens from the range's end on, which no row sees, become
  /// zeros: they may be another document's, or nothing yet. Those before its begin are of its own
  /// span, and only their scores are hidden.
  __device__ void copy(bool values, Ring& ring) const {
    const Ring to = ring.take();
    const auto* map = static_cast<const char*>(args_.page_maps) +
                      (max(tokens_, 1) - 1) * static_cast<int>(PageMaps::kBytesEach);
    const BoxPlace place{{0, half_, tokens_ > 0 ? 0 : kBlockSize,
                          (block_ * 2 + (values ? 1 : 0)) * args_.num_kv_heads + kv_head_}};
    to.wait_empty();
    if (threadIdx.x % 32 == 0) arrive_expecting(to.full(), kMatrixBytes / kCopierWarps);
    __syncwarp();
    if (active_)
      copy_box(to.slot() + half_ * kHalfBytes + page_ * kBoxBytes, map, place, to.full());
  }

 private:
  static constexpr int kWarpPages = kStagePages / kCopierWarps;

  const AttentionArgs& args_;
  int kv_head_;
  int page_;
  int half_;
  bool active_;
  int tokens_ = 0;  // of the page
  int block_ = 0;
};

/// s = q K of a stage, in the background.
template <typename T>
__device__ inline void score_keys(const uint32_t (&q)[kHeadDim / 16][4], uint32_t k,
                                  float (&s)[16][4]) {
  const uint64_t keys = matrix_descriptor(k, 16);
#pragma unroll
  for (int step = 0; step < kHeadDim / 16; ++step) {
    const uint32_t distance = step / 4 * kHalfBytes + step % 4 * 32;
    multiply_group<T, false>(s, q[step], moved(keys, distance), step > 0);
  }
  commit_products();
}

/// out += p V of a stage, in the background.
template <typename T>
__device__ inline void add_values(const uint32_t (&p)[kStagePages][4], uint32_t v,
                                  float (&out)[16][4]) {
  const uint64_t values = matrix_descriptor(v, kHalfBytes);
#pragma unroll
  for (int page = 0; page < kStagePages; ++page) {
    multiply_group<T, true>(out, p[page], moved(values, page * kBoxBytes), 1);
  }
  commit_products();
}

/// The rows of a warp, and what is known of them and the range that they have met last.
struct Meeting {
  LaneRows rows;
  const QuadOfQ* kept;  // Q, turned by position
  int range = -1;
  LaneMask mask;
};

/// Turns Q for the cursor's range.
template <typename T>
__device__ inline void meet_range(const AttentionArgs& args, const Cursor& cursor, Meeting& meeting,
                                  uint32_t (&q)[kHeadDim / 16][4]) {
  if (cursor.range_index() == meeting.range) return;
  meeting.range = cursor.range_index();
  turn_kept_q<T, kHeadDim>(args, cursor.range(), meeting.rows, meeting.kept, q);
  meeting.mask = make_mask(args, cursor.range(), meeting.rows);
}

template <typename T>
__device__ inline float2 weigh_stage(const AttentionArgs& args, const Cursor& cursor,
                                     const LaneMask& mask, float (&s)[16][4],
                                     TileState<kHeadDim>& state) {
  const int token = cursor.first_token();
  settle(s);
  if (!all_visible(args, cursor.range(), token, token + kStageTokens)) hide_keys(s, token, mask);
  const float2 keep = weights_of(s, args.scale_log2, state.maximum, state.sum);
  settle(s);
  return keep;
}

template <typename T>
__device__ inline void pack_stage(const float (&s)[16][4], uint32_t (&p)[kStagePages][4]) {
#pragma unroll
  for (int page = 0; page < kStagePages; ++page) {
    pack_weights<T>(s[2 * page], s[2 * page + 1], p[page]);
  }
}

/// The tensor cores are a consumer's until its products are done: products of both at once would
/// end at the same time, and leave the tensor cores idle while both make scores into weights.
__device__ inline void take_turn(int consumer) {
  asm volatile("bar.sync %0, %1;" ::"r"(1 + consumer), "n"(kConsumers * kGroupThreads) : "memory");
}
__device__ inline void give_turn(int consumer) {
  asm volatile("bar.arrive %0, %1;" ::"r"(2 - consumer), "n"(kConsumers * kGroupThreads)
               : "memory");
}

/// One unit's stages for the 64 rows of a warp group.
template <typename T>
__device__ void attend(const AttentionArgs& args, const WorkItem& item, Meeting& meeting,
                       Ring& ring, int consumer, TileState<kHeadDim>& state) {
  Cursor cursor(args, item);
  uint32_t q[kHeadDim / 16][4];
  uint32_t p[kStagePages][4];
  float s[16][4];
  meet_range<T>(args, cursor, meeting, q);
  const Ring first = ring.take();
  first.wait_full();
  take_turn(consumer);
  begin_products();
  score_keys<T>(q, first.slot(), s);
  give_turn(consumer);
  wait_for_products<0>();
  first.free();
  weigh_stage<T>(args, cursor, meeting.mask, s, state);
  pack_stage<T>(s, p);
  for (cursor.next(); !cursor.done(); cursor.next()) {
    meet_range<T>(args, cursor, meeting, q);
    const Ring keys = ring.take();
    const Ring values = ring.take();
    keys.wait_full();
    values.wait_full();
    take_turn(consumer);
    begin_products();
    score_keys<T>(q, keys.slot(), s);
    add_values<T>(p, values.slot(), state.out);
    wait_for_products<1>();
    keys.free();
    const float2 keep = weigh_stage<T>(args, cursor, meeting.mask, s, state);
    wait_for_products<0>();
    give_turn(consumer);
    values.free();
    keep_outputs<kHeadDim>(keep, state.out);
    pack_stage<T>(s, p);
  }
  const Ring last = ring.take();
  last.wait_full();
  begin_products();
  add_values<T>(p, last.slot(), state.out);
  wait_for_products<0>();
  last.free();
}

/// Lets a unit's stages pass.
__device__ inline void let_pass(const AttentionArgs& args, const WorkItem& item, Ring& ring,
                                int consumer) {
  const auto let_slot_pass = [&ring] {
    const Ring slot = ring.take();
    slot.wait_full();
    slot.free();
  };
  bool first = true;
  for (Cursor cursor(args, item); !cursor.done(); cursor.next()) {
    let_slot_pass();
    if (!first) let_slot_pass();
    first = false;
    take_turn(consumer);
    give_turn(consumer);
  }
  if (!first) let_slot_pass();
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

__device__ inline void copy_units(const AttentionArgs& args, Ring ring) {
  for_each_unit(args, [&](const Unit& unit) {
    Cursor cursor(args, unit.item);
    if (cursor.done()) return;
    StageCopier stage(args, unit.kv_head);
    stage.find(cursor);
    stage.copy(false, ring);
    for (cursor.next(); !cursor.done(); cursor.next()) {
      StageCopier before = stage;
      stage.find(cursor);
      stage.copy(false, ring);
      before.copy(true, ring);
    }
    stage.copy(true, ring);
  });
}

template <typename T>
__device__ void attend_rows(const AttentionArgs& args, Ring ring, int consumer, char* kept_q) {
  const int warp = static_cast<int>(threadIdx.x) / 32 - kGroupThreads / 32;
  auto* kept = reinterpret_cast<QuadOfQ*>(kept_q + warp * kKeptBytes<kHeadDim>);
  if (consumer == 1) give_turn(consumer);  // the other one is the first
  for_each_unit(args, [&](const Unit& unit) {
    const int group_row = unit.first_row + consumer * kGroupRows;
    if (group_row >= unit.num_rows) return let_pass(args, unit.item, ring, consumer);
    const int first_row = unit.first_row + warp * 16;
    Meeting meeting{.rows = find_rows<kHeadDim>(args, unit.item, unit.kv_head, first_row),
                    .kept = kept,
                    .mask = {}};
    TileState<kHeadDim> state;
    if (unit.item.range_begin < unit.item.range_end) {
      keep_q<T, kHeadDim, 1>(meeting.rows, 0, kept);
      attend<T>(args, unit.item, meeting, ring, consumer, state);
    }
    finish_sums(state);
    write_rows<T, kHeadDim>(args, unit.item, unit.kv_head, meeting.rows, state);
  });
}

#endif  // ANYSLOT_HAS_WGMMA

template <typename T>
__global__ void __launch_bounds__(kThreads, 1) hopper_attention(AttentionArgs args) {
#if ANYSLOT_HAS_WGMMA
  extern __shared__ char shared[];
  char* aligned = shared + (kAlignment - shared_address(shared) % kAlignment) % kAlignment;
  const Ring ring(shared_address(aligned));
  if (threadIdx.x == 0) ring.init();
  __syncthreads();
  let_merge_start();
  // Of the warp, as the compiler sees, so that products are in no divergent branch.
  const int warp_group = __shfl_sync(0xffffffffU, threadIdx.x / kGroupThreads, 0);
  if (warp_group == 0) {
    give_registers<kCopierRegisters>();
    copy_units(args, ring);
  } else {
    take_registers<kConsumerRegisters>();
    attend_rows<T>(args, ring, warp_group - 1, aligned + kRingBytes);
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
