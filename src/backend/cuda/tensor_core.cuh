#pragma once

#include <cuda_bf16.h>

#include <cstdint>

#include "backend/cuda/attention_device.cuh"

// One warp's attention of 16 rows to pages in shared memory, by mma.m16n8k16 (sm_80 and later).
// Lane g * 4 + t holds rows g and g + 8, and of 8 columns 2t and 2t + 1.

namespace anyslot::cuda {

using bf16 = __nv_bfloat16;

/// Bytes of the K or the V of one head of one page.
template <int kHeadDim>
inline constexpr int kPageBytes = kBlockSize* kHeadDim* static_cast<int>(sizeof(bf16));

__device__ inline uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

/// Copies 16 bytes to shared memory in the background; zeros when not `valid`.
__device__ inline void copy_async(uint32_t to, const void* from, bool valid) {
  const int bytes = valid ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes)
               : "memory");
}
__device__ inline void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kPending>
__device__ inline void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

__device__ inline void load_matrices(uint32_t (&m)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
               : "r"(address)
               : "memory");
}
__device__ inline void load_transposed(uint32_t (&m)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
               : "r"(address)
               : "memory");
}

__device__ inline void multiply(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ inline uint32_t pack(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return reinterpret_cast<const uint32_t&>(pair);
}

__device__ inline float2 unpack(uint32_t pair) {
  return __bfloat1622float2(reinterpret_cast<const __nv_bfloat162&>(pair));
}
__device__ inline void load_shared(uint32_t (&x)[4], uint32_t address) {
  asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
               : "r"(address)
               : "memory");
}
__device__ inline void store_shared(uint32_t address, const uint32_t (&x)[4]) {
  asm volatile("st.shared.v4.u32 [%0], {%1,%2,%3,%4};" ::"r"(address), "r"(x[0]), "r"(x[1]),
               "r"(x[2]), "r"(x[3])
               : "memory");
}

__device__ inline float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// Rows of a page are 16-byte chunks; chunk c of token r lies at c ^ (r % 8), so that the 8 rows
/// that a matrix load reads at once lie in different banks.
template <int kHeadDim>
__device__ inline uint32_t chunk_offset(int token, int chunk) {
  return static_cast<uint32_t>((token * (kHeadDim / 8) + (chunk ^ (token & 7))) * 16);
}

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

/// The lane's part of Q as it meets a range: turned from the unturned rows, in 16 columns each.
template <int kHeadDim>
__device__ inline void load_turned_q(const AttentionArgs& args, const DeviceRange& range,
                                     const LaneRows& rows, uint32_t (&q)[kHeadDim / 16][4]) {
  constexpr int kHalf = kHeadDim / 2;
  const int t = threadIdx.x % 4;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const bool exists = rows.q[i] != nullptr;
    const float2* turns = args.turn_rotations + int64_t{range_turn(args, range, rows.r[i])} * kHalf;
#pragma unroll
    for (int step = 0; step < kHalf / 16; ++step) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int c = step * 16 + h * 8 + 2 * t;
        uint32_t low = 0;
        uint32_t high = 0;
        if (exists) {
          const float2 x = *reinterpret_cast<const float2*>(rows.q[i] + c);
          const float2 y = *reinterpret_cast<const float2*>(rows.q[i] + c + kHalf);
          const float4 of_row = *reinterpret_cast<const float4*>(rows.rotation[i] + c);
          const float4 of_range = *reinterpret_cast<const float4*>(turns + c);
          const float2 a = compose({of_row.x, of_row.y}, {of_range.x, of_range.y});
          const float2 b = compose({of_row.z, of_row.w}, {of_range.z, of_range.w});
          low = pack(x.x * a.x - y.x * a.y, x.y * b.x - y.y * b.y);
          high = pack(y.x * a.x + x.x * a.y, y.y * b.x + x.y * b.y);
        }
        q[step][i + 2 * h] = low;
        q[step + kHalf / 16][i + 2 * h] = high;
      }
    }
  }
}

/// Rotations of a range's raw keys, from a token on.
template <int kHeadDim>
__device__ inline const float2* key_rotations(const AttentionArgs& args, const DeviceRange& range,
                                              int token) {
  return args.turn_rotations + (int64_t{range.key_rotation} + token) * (kHeadDim / 2);
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

/// Turns raw keys in shared memory to their places: kPages pages, each K, then V. rotations: of the
/// first page's token 0 and what follows it, [num_tokens, kHeadDim / 2]. Threads
/// [0, kThreads) of the block, or of a warp, share the work. Not inline, so that the registers it
/// needs are taken from loops over turned keys only where raw ones come.
template <int kHeadDim, int kPages, int kThreads>
__device__ __noinline__ void turn_keys(const float2* rotations, int num_tokens, uint32_t pages) {
  constexpr int kHalfChunks = kHeadDim / 16;
#pragma unroll
  for (int i = 0; i < kPages * kBlockSize * kHalfChunks / kThreads; ++i) {
    const int unit = i * kThreads + static_cast<int>(threadIdx.x % kThreads);
    const int token = unit / kHalfChunks;
    const int chunk = unit % kHalfChunks;
    if (token >= num_tokens) continue;
    const uint32_t page = pages + token / kBlockSize * 2 * kPageBytes<kHeadDim>;
    const uint32_t low = page + chunk_offset<kHeadDim>(token % kBlockSize, chunk);
    const uint32_t high = page + chunk_offset<kHeadDim>(token % kBlockSize, chunk + kHalfChunks);
    const auto* rotation =
        reinterpret_cast<const float4*>(rotations + int64_t{token} * (kHeadDim / 2) + chunk * 8);
    uint32_t x[4];
    uint32_t y[4];
    load_shared(x, low);
    load_shared(y, high);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const float4 turn = __ldg(rotation + j);  // of two dimensions
      const float2 a = unpack(x[j]);
      const float2 b = unpack(y[j]);
      x[j] = pack(a.x * turn.x - b.x * turn.y, a.y * turn.z - b.y * turn.w);
      y[j] = pack(b.x * turn.x + a.x * turn.y, b.y * turn.z + a.y * turn.w);
    }
    store_shared(low, x);
    store_shared(high, y);
  }
}

/// The softmax of 16 rows so far.
template <int kHeadDim>
struct TileState {
  float out[kHeadDim / 8][4] = {};
  float maximum[2] = {-INFINITY, -INFINITY};  // of the scores, in base 2; equal in the 4 lanes
  float sum[2] = {0.0F, 0.0F};                // of the lane's own columns
};

/// Hides the keys that a lane's rows do not see. s: (16 rows, 8 * kColumns keys from first_token
/// on).
template <int kColumns>
__device__ inline void hide_keys(float (&s)[kColumns][4], int first_token, const LaneMask& mask) {
#pragma unroll
  for (int n = 0; n < kColumns; ++n) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int token = first_token + n * 8 + static_cast<int>(threadIdx.x) % 4 * 2 + e % 2;
      const Visible& visible = mask.visible[e / 2];
      if (token < visible.first || token >= visible.end) s[n][e] = -INFINITY;
    }
  }
}

/// Turns scores into weights under the maximum so far, and the state to that maximum.
template <int kHeadDim, int kColumns>
__device__ inline void weigh_keys(float (&s)[kColumns][4], float scale,
                                  TileState<kHeadDim>& state) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    float largest = s[0][2 * i];
#pragma unroll
    for (int n = 0; n < kColumns; ++n) {
      largest = fmaxf(largest, fmaxf(s[n][2 * i], s[n][2 * i + 1]));
    }
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffffU, largest, 1));
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffffU, largest, 2)) * scale;
    const float maximum = fmaxf(state.maximum[i], largest);
    const float offset = maximum == -INFINITY ? 0.0F : maximum;
    const float keep = exp2_fast(state.maximum[i] - offset);
    state.maximum[i] = maximum;
    float sum = 0.0F;
#pragma unroll
    for (int n = 0; n < kColumns; ++n) {
#pragma unroll
      for (int e = 2 * i; e < 2 * i + 2; ++e) {
        s[n][e] = exp2_fast(s[n][e] * scale - offset);
        sum += s[n][e];
      }
    }
    state.sum[i] = state.sum[i] * keep + sum;
    if (__any_sync(0xffffffffU, keep != 1.0F)) {  // maxima settle soon
#pragma unroll
      for (int n = 0; n < kHeadDim / 8; ++n) {
        state.out[n][2 * i] *= keep;
        state.out[n][2 * i + 1] *= keep;
      }
    }
  }
}

/// The weights of a page's 16 keys as the left side of a product.
__device__ inline void pack_weights(const float (&first)[4], const float (&second)[4],
                                    uint32_t (&p)[4]) {
  p[0] = pack(first[0], first[1]);
  p[1] = pack(first[2], first[3]);
  p[2] = pack(second[0], second[1]);
  p[3] = pack(second[2], second[3]);
}

/// Attends with kTiles tiles of 16 rows to kPages pages; `k` and `v` are addresses of the first,
/// the others follow kPageStride bytes apart. load_q(step, tile, fragment) gives 16 columns of Q;
/// mask_of(tile), asked when `masked`, what its rows see.
/// first_token: token 0 of the first page.
template <int kHeadDim, int kTiles, int kPages, int kPageStride, typename LoadQ, typename MaskOf>
__device__ inline void attend_pages(const LoadQ& load_q, uint32_t k, uint32_t v, int first_token,
                                    bool masked, const MaskOf& mask_of, float scale,
                                    TileState<kHeadDim> (&states)[kTiles]) {
  const int lane = threadIdx.x % 32;
  float s[kTiles][kPages * 2][4] = {};
  const int key_row = lane / 16 * 8 + lane % 8;
  const int key_chunk = lane / 8 % 2;
#pragma unroll
  for (int step = 0; step < kHeadDim / 16; ++step) {
    uint32_t q[kTiles][4];
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) load_q(step, tile, q[tile]);
      // All pages of a step before the next one, so that products do not wait for each other.
#pragma unroll
    for (int page = 0; page < kPages; ++page) {
      uint32_t b[4];
      load_matrices(b,
                    k + page * kPageStride + chunk_offset<kHeadDim>(key_row, step * 2 + key_chunk));
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
        multiply(s[tile][2 * page], q[tile], b[0], b[1]);
        multiply(s[tile][2 * page + 1], q[tile], b[2], b[3]);
      }
    }
  }
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) {
    if (masked) hide_keys(s[tile], first_token, mask_of(tile));
    weigh_keys(s[tile], scale, states[tile]);
  }
  const int value_row = lane % 16;
  const int value_chunk = lane / 16;
#pragma unroll
  for (int page = 0; page < kPages; ++page) {
    uint32_t p[kTiles][4];
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      pack_weights(s[tile][2 * page], s[tile][2 * page + 1], p[tile]);
    }
#pragma unroll
    for (int n = 0; n < kHeadDim / 16; ++n) {
      uint32_t b[4];
      load_transposed(
          b, v + page * kPageStride + chunk_offset<kHeadDim>(value_row, n * 2 + value_chunk));
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
        multiply(states[tile].out[2 * n], p[tile], b[0], b[1]);
        multiply(states[tile].out[2 * n + 1], p[tile], b[2], b[3]);
      }
    }
  }
}

/// The sums of whole rows, from those of the lanes.
template <int kHeadDim>
__device__ inline void finish_sums(TileState<kHeadDim>& state) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    state.sum[i] += __shfl_xor_sync(0xffffffffU, state.sum[i], 1);
    state.sum[i] += __shfl_xor_sync(0xffffffffU, state.sum[i], 2);
  }
}

}  // namespace anyslot::cuda
