#pragma once

#include <cstdint>

#include "backend/cuda/attention_device.cuh"
#include "backend/cuda/pages.cuh"

// The rows x heads of a warp's tile of 16: where they lie, what they see, and their Q. Lane g * 4 +
// t holds rows g and g + 8, and of 8 columns 2t and 2t + 1.

namespace anyslot::cuda {

/// A lane's two rows of the tile.
struct LaneRows {
  const float* q[2] = {nullptr, nullptr};  // nullptr: no such row
  const float2* rotation[2] = {nullptr, nullptr};
  int r[2] = {0, 0};  // row of the item
  int position[2] = {0, 0};
};

/// first_row: the warp's first of the item's rows x group.
template <int kHeadDim>
__device__ inline LaneRows find_rows(const AttentionArgs& args, const WorkItem& item, int kv_head,
                                     int first_row) {
  LaneRows rows;
  const int group = args.num_heads / args.num_kv_heads;
  const int count = (item.row_end - item.row_begin) * group;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int m = first_row + static_cast<int>(threadIdx.x % 32) / 4 + 8 * i;
    if (m >= count) continue;
    const int r = m / group;
    const int row = args.rows[item.row_begin + r];
    rows.r[i] = r;
    rows.q[i] = args.q + args.output_rows[item.row_begin + r] * args.q_stride +
                (kv_head * group + m % group) * kHeadDim;
    rows.rotation[i] = args.row_rotations + int64_t{row} * (kHeadDim / 2);
    rows.position[i] = args.positions[row];
  }
  return rows;
}

/// Two pairs of a row of Q, columns c, c + 1, c + kHeadDim / 2 and the one after.
struct alignas(16) QuadOfQ {
  float2 low;
  float2 high;
};
__device__ inline QuadOfQ turned(const QuadOfQ& x, float4 turns) {
  return {{x.low.x * turns.x - x.high.x * turns.y, x.low.y * turns.z - x.high.y * turns.w},
          {x.high.x * turns.x + x.low.x * turns.y, x.high.y * turns.z + x.low.y * turns.w}};
}
__device__ inline float4 turns_at(const float2* rotation, int c) {
  return *reinterpret_cast<const float4*>(rotation + c);
}

/// Quads of a lane's two rows of Q.
template <int kHeadDim>
inline constexpr int kLaneQuads = 2 * kHeadDim / 16;
/// Bytes of a tile of 16 rows as float32.
template <int kHeadDim>
inline constexpr int kKeptBytes = 16 * kHeadDim* static_cast<int>(sizeof(float));

/// Keeps the lane's rows in shared memory, turned by their positions: of kWarps warps with the same
/// rows each keeps a part. All lanes' first quads come first, so that banks do not conflict.
template <typename T, int kHeadDim, int kWarps>
__device__ inline void keep_q(const LaneRows& rows, int warp, QuadOfQ* kept) {
#pragma unroll
  for (int n = 0; n < kLaneQuads<kHeadDim> / kWarps; ++n) {
    const int quad = n * kWarps + warp;
    const int i = quad % 2;
    const int c = product_column<T, kHeadDim>(quad / 4, quad / 2 % 2);
    QuadOfQ x{};
    const float* q = i == 0 ? rows.q[0] : rows.q[1];
    const float2* rotation = i == 0 ? rows.rotation[0] : rows.rotation[1];
    if (q != nullptr) {
      x = {*reinterpret_cast<const float2*>(q + c),
           *reinterpret_cast<const float2*>(q + c + kHeadDim / 2)};
      x = turned(x, turns_at(rotation, c));
    }
    kept[quad * 32 + static_cast<int>(threadIdx.x % 32)] = x;
  }
}

/// Where Q of the lane's rows is turned for a range.
struct LaneTurns {
  const float2* of_row[2];
  bool same;
};
template <int kHeadDim>
__device__ inline LaneTurns find_turns(const AttentionArgs& args, const DeviceRange& range,
                                       const LaneRows& rows) {
  LaneTurns turns;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int turn = range_turn(args, range, rows.r[i]);
    turns.of_row[i] = args.turn_rotations + int64_t{turn} * (kHeadDim / 2);
  }
  turns.same = range.starts < 0;
  return turns;
}

/// A lane's part of Q as it meets a range: store(step, h, i, low, high) takes what row i has in the
/// columns of half h of step `step`, and in those kHeadDim / 2 further. quad_of(step, h, i) gives
/// it turned by the row's position; it is turned anew for each range, so that no error adds up.
/// kAtOnce: steps that may be loaded before the first is turned, for which there must be registers.
template <typename T, int kHeadDim, int kAtOnce, typename QuadOf, typename Store>
__device__ inline void turn_q(const LaneTurns& turns, const QuadOf& quad_of, const Store& store) {
#pragma unroll kAtOnce
  for (int step = 0; step < kHeadDim / 32; ++step) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int c = product_column<T, kHeadDim>(step, h);
      const float4 first = turns_at(turns.of_row[0], c);
      const float4 second = turns.same ? first : turns_at(turns.of_row[1], c);
      uint32_t low[2];
      uint32_t high[2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const QuadOfQ x = turned(quad_of(step, h, i), i == 0 ? first : second);
        low[i] = pack<Product<T>>(x.low.x, x.low.y);
        high[i] = pack<Product<T>>(x.high.x, x.high.y);
      }
#pragma unroll
      for (int i = 0; i < 2; ++i) store(step, h, i, low[i], high[i]);
    }
  }
}

/// All of the lane's part in registers, in 16 columns each, from what keep_q kept.
template <typename T, int kHeadDim>
__device__ inline void turn_kept_q(const AttentionArgs& args, const DeviceRange& range,
                                   const LaneRows& rows, const QuadOfQ* kept,
                                   uint32_t (&q)[kHeadDim / 16][4]) {
  constexpr int kHalfSteps = kHeadDim / 32;
  const auto quad_of = [kept](int step, int h, int i) {
    return kept[((step * 2 + h) * 2 + i) * 32 + static_cast<int>(threadIdx.x % 32)];
  };
  const auto store = [&q](int step, int h, int i, uint32_t low, uint32_t high) {
    q[step][i + 2 * h] = low;
    q[step + kHalfSteps][i + 2 * h] = high;
  };
  turn_q<T, kHeadDim, kHalfSteps>(find_turns<kHeadDim>(args, range, rows), quad_of, store);
}

/// Rotations of a range's raw keys, of the first key of each block from a token's block on.
template <int kHeadDim>
__device__ inline const float2* block_rotations(const AttentionArgs& args, const DeviceRange& range,
                                                int token) {
  return args.turn_rotations + (int64_t{range.key_rotation} + token / kBlockSize) * (kHeadDim / 2);
}

/// What a lane's two rows see of a range.
struct LaneMask {
  Visible visible[2];
};
__device__ inline LaneMask make_mask(const AttentionArgs& args, const DeviceRange& range,
                                     const LaneRows& rows) {
  LaneMask mask;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    mask.visible[i] =
        visible_tokens(range, rows.position[i] - range_start(args, range, rows.r[i]), args.window);
  }
  return mask;
}
/// Whether all rows of the item see all of the tokens [first, end).
__device__ inline bool all_visible(const AttentionArgs& args, const DeviceRange& range, int first,
                                   int end) {
  return first >= range.begin && end <= range.end && end - 1 <= range.min_distance &&
         (args.window == 0 || first > range.max_distance - args.window);
}

}  // namespace anyslot::cuda
