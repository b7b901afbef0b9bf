#pragma once

#include <cstdint>

#include "backend/cuda/mma.cuh"
#include "backend/cuda/query_rows.cuh"

// One warp's attention of 16 rows to pages in shared memory.

namespace anyslot::cuda {

/// Turns raw keys in shared memory to their places: kPages pages, each K, then V. of_blocks:
/// rotations of the pages' first keys, [kPages, kHeadDim / 2]; of_places: of the places in a page,
/// [kBlockSize, kHeadDim / 2]; pairs as key_pair_place says. Threads [0, kThreads) of the block, or
/// of a warp, share the work. Not inline, so that the registers it needs are taken from loops over
/// turned keys only where raw ones come.
template <typename T, int kHeadDim, int kPages, int kThreads>
__device__ __noinline__ void turn_keys(const float2* of_blocks, const float2* of_places,
                                       int num_tokens, uint32_t pages) {
  constexpr int kHalfChunks = kHeadDim / 16;
#pragma unroll
  for (int i = 0; i < kPages * kBlockSize * kHalfChunks / kThreads; ++i) {
    const int unit = i * kThreads + static_cast<int>(threadIdx.x % kThreads);
    const int token = unit / kHalfChunks;
    const int chunk = unit % kHalfChunks;
    if (token >= num_tokens) continue;
    const int place = token % kBlockSize;
    const uint32_t page = pages + token / kBlockSize * 2 * kPageBytes<kHeadDim>;
    const uint32_t low = page + chunk_offset<kHeadDim>(place, chunk);
    const uint32_t high = page + chunk_offset<kHeadDim>(place, chunk + kHalfChunks);
    const auto* of_block =
        reinterpret_cast<const float4*>(of_blocks + token / kBlockSize * (kHeadDim / 2)) + chunk;
    const auto* of_place =
        reinterpret_cast<const float4*>(of_places + place * (kHeadDim / 2)) + chunk;
    uint32_t x[4];
    uint32_t y[4];
    load_shared(x, low);
    load_shared(y, high);
#pragma unroll
    for (int j = 0; j < 4; ++j) {  // two dimensions each
      const float4 base = __ldg(of_block + j * kHalfChunks);
      const float4 rest = __ldg(of_place + j * kHalfChunks);
      const float2 first = compose({base.x, base.y}, {rest.x, rest.y});
      const float2 second = compose({base.z, base.w}, {rest.z, rest.w});
      const float2 a = unpack<T>(x[j]);
      const float2 b = unpack<T>(y[j]);
      x[j] = pack<T>(a.x * first.x - b.x * first.y, a.y * second.x - b.y * second.y);
      y[j] = pack<T>(b.x * first.x + a.x * first.y, b.y * second.x + a.y * second.y);
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

/// Turns scores into weights under the maximum so far. Returns by what each row's outputs are to
/// be multiplied, so that they are under it, too.
template <int kColumns>
__device__ inline float2 weights_of(float (&s)[kColumns][4], float scale, float (&maximum)[2],
                                    float (&sum)[2]) {
  float keep[2];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    float largest = s[0][2 * i];
#pragma unroll
    for (int n = 0; n < kColumns; ++n) {
      largest = fmaxf(largest, fmaxf(s[n][2 * i], s[n][2 * i + 1]));
    }
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffffU, largest, 1));
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffffU, largest, 2)) * scale;
    const float now = fmaxf(maximum[i], largest);
    const float offset = now == -INFINITY ? 0.0F : now;
    keep[i] = exp2_fast(maximum[i] - offset);
    maximum[i] = now;
    float added = 0.0F;
#pragma unroll
    for (int n = 0; n < kColumns; ++n) {
#pragma unroll
      for (int e = 2 * i; e < 2 * i + 2; ++e) {
        s[n][e] = exp2_fast(s[n][e] * scale - offset);
        added += s[n][e];
      }
    }
    sum[i] = sum[i] * keep[i] + added;
  }
  return {keep[0], keep[1]};
}

template <int kHeadDim>
__device__ inline void keep_outputs(float2 keep, float (&out)[kHeadDim / 8][4]) {
  if (!__any_sync(0xffffffffU, keep.x != 1.0F || keep.y != 1.0F)) return;  // maxima settle soon
#pragma unroll
  for (int n = 0; n < kHeadDim / 8; ++n) {
    out[n][0] *= keep.x;
    out[n][1] *= keep.x;
    out[n][2] *= keep.y;
    out[n][3] *= keep.y;
  }
}

/// Turns scores into weights under the maximum so far, and the state to that maximum.
template <int kHeadDim, int kColumns>
__device__ inline void weigh_keys(float (&s)[kColumns][4], float scale,
                                  TileState<kHeadDim>& state) {
  keep_outputs<kHeadDim>(weights_of(s, scale, state.maximum, state.sum), state.out);
}

/// The weights of a page's 16 keys as the left side of a product.
template <typename T>
__device__ inline void pack_weights(const float (&first)[4], const float (&second)[4],
                                    uint32_t (&p)[4]) {
  p[0] = pack<T>(first[0], first[1]);
  p[1] = pack<T>(first[2], first[3]);
  p[2] = pack<T>(second[0], second[1]);
  p[3] = pack<T>(second[2], second[3]);
}

/// Attends with kTiles tiles of 16 rows to kPages pages; `k` and `v` are addresses of the first,
/// the others follow kPageStride bytes apart. load_q(step, tile, fragment) gives 16 columns of Q;
/// mask_of(tile), asked when `masked`, what its rows see.
/// first_token: token 0 of the first page.
template <typename T, int kHeadDim, int kTiles, int kPages, int kPageStride, typename LoadQ,
          typename MaskOf>
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
        multiply<T>(s[tile][2 * page], q[tile], b[0], b[1]);
        multiply<T>(s[tile][2 * page + 1], q[tile], b[2], b[3]);
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
      pack_weights<T>(s[tile][2 * page], s[tile][2 * page + 1], p[tile]);
    }
#pragma unroll
    for (int n = 0; n < kHeadDim / 16; ++n) {
      uint32_t b[4];
      load_transposed(
          b, v + page * kPageStride + chunk_offset<kHeadDim>(value_row, n * 2 + value_chunk));
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
        multiply<T>(states[tile].out[2 * n], p[tile], b[0], b[1]);
        multiply<T>(states[tile].out[2 * n + 1], p[tile], b[2], b[3]);
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

/// What 16 rows of a warp came to: partials of the item, or outputs.
template <typename T, int kHeadDim>
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
      T* result =
          static_cast<T*>(args.out) + output_row * args.out_stride + head * kHeadDim + 2 * t;
#pragma unroll
      for (int n = 0; n < kHeadDim / 8; ++n) {
        *reinterpret_cast<uint32_t*>(result + n * 8) =
            pack<T>(state.out[n][2 * i] * factor, state.out[n][2 * i + 1] * factor);
      }
    }
  }
}

}  // namespace anyslot::cuda
