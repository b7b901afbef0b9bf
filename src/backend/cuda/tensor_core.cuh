#pragma once

#include <cstdint>
#include <type_traits>

#include "backend/cuda/page_products.cuh"
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
  constexpr int kHalfEights = kHeadDim / 16;
#pragma unroll
  for (int i = 0; i < kPages * kBlockSize * kHalfEights / kThreads; ++i) {
    const int unit = i * kThreads + static_cast<int>(threadIdx.x % kThreads);
    const int token = unit / kHalfEights;
    const int eight = unit % kHalfEights;
    if (token >= num_tokens) continue;
    const int place = token % kBlockSize;
    const uint32_t page = pages + token / kBlockSize * 2 * kPageBytes<T, kHeadDim>;
    Eight<T, kHeadDim> low(page, place, eight);
    Eight<T, kHeadDim> high(page, place, eight + kHalfEights);
    const auto* of_block =
        reinterpret_cast<const float4*>(of_blocks + token / kBlockSize * (kHeadDim / 2)) + eight;
    const auto* of_place =
        reinterpret_cast<const float4*>(of_places + place * (kHeadDim / 2)) + eight;
#pragma unroll
    for (int j = 0; j < 4; ++j) {  // two dimensions each
      const float4 base = __ldg(of_block + j * kHalfEights);
      const float4 rest = __ldg(of_place + j * kHalfEights);
      const float2 first = compose({base.x, base.y}, {rest.x, rest.y});
      const float2 second = compose({base.z, base.w}, {rest.z, rest.w});
      const float2 a = low.pair(j);
      const float2 b = high.pair(j);
      low.set_pair(j, a.x * first.x - b.x * first.y, a.y * second.x - b.y * second.y);
      high.set_pair(j, b.x * first.x + a.x * first.y, b.y * second.x + a.y * second.y);
    }
    low.store();
    high.store();
  }
}

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

/// Attends with kTiles tiles of 16 rows to kPages pages; `k` and `v` are addresses of the first,
/// the others follow kPageStride bytes apart. load_q(step, tile, fragment) gives 16 columns of Q;
/// mask_of(tile), asked when `masked`, what its rows see.
/// first_token: token 0 of the first page.
template <typename T, int kHeadDim, int kTiles, int kPages, int kPageStride, typename LoadQ,
          typename MaskOf>
__device__ inline void attend_pages(const LoadQ& load_q, uint32_t k, uint32_t v, int first_token,
                                    bool masked, const MaskOf& mask_of, float scale,
                                    TileState<kHeadDim> (&states)[kTiles]) {
  float s[kTiles][kPages * 2][4] = {};
  if constexpr (std::is_same_v<T, fp8>) {
    multiply_fp8_keys<kHeadDim, kTiles, kPages, kPageStride>(load_q, k, s);
  } else {
    multiply_keys<T, kHeadDim, kTiles, kPages, kPageStride>(load_q, k, s);
  }
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) {
    if (masked) hide_keys(s[tile], first_token, mask_of(tile));
    weigh_keys(s[tile], scale, states[tile]);
  }
  multiply_values<T, kHeadDim, kTiles, kPages, kPageStride>(s, v, states);
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
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    if (rows.q[i] == nullptr) continue;
    const int output_row = args.output_rows[item.row_begin + rows.r[i]];
    const int head = static_cast<int>(rows.q[i] - (args.q + output_row * args.q_stride)) / kHeadDim;
    if (item.partial >= 0) {
      const int64_t slot = (int64_t{item.partial} + rows.r[i]) * args.num_heads + head;
      float* result = args.partial_out + slot * kHeadDim;
      for_each_output<T, kHeadDim>(state.out, i, [&](int column, float low, float high) {
        *reinterpret_cast<float2*>(result + column) = {low, high};
      });
      if (threadIdx.x % 4 == 0) args.partial_state[slot] = {state.maximum[i], state.sum[i]};
    } else {
      const float factor = state.sum[i] > 0.0F ? 1.0F / state.sum[i] : 0.0F;
      const int64_t result = output_row * args.out_stride + int64_t{head} * kHeadDim;
      for_each_output<T, kHeadDim>(state.out, i, [&](int column, float low, float high) {
        store_outputs<T>(args, result + column, low * factor, high * factor);
      });
    }
  }
}

}  // namespace anyslot::cuda
