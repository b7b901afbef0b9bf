#pragma once

#include <cstdint>
#include <type_traits>

#include "backend/cuda/pages.cuh"

// Products of a warp's tiles of 16 rows with kPages pages in shared memory, kPageStride bytes
// apart.

namespace anyslot::cuda {

/// The softmax of 16 rows so far.
template <int kHeadDim>
struct TileState {
  float out[kHeadDim / 8][4] = {};
  float maximum[2] = {-INFINITY, -INFINITY};  // of the scores, in base 2; equal in the 4 lanes
  float sum[2] = {0.0F, 0.0F};                // of the lane's own columns
};

/// Four elements of fp8 as two registers of fp16.
struct WidenedFour {
  uint32_t low;
  uint32_t high;
};
__device__ inline WidenedFour widened_four(uint32_t four) {
  return {widened(four & 0xffffU), widened(four >> 16)};
}

/// s = Q K, of elements of 16 bits. load_q(step, tile, fragment) gives 16 columns of Q.
template <typename T, int kHeadDim, int kTiles, int kPages, int kPageStride, typename LoadQ>
__device__ inline void multiply_keys(const LoadQ& load_q, uint32_t k,
                                     float (&s)[kTiles][kPages * 2][4]) {
  const int lane = threadIdx.x % 32;
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
      load_matrices(
          b, k + page * kPageStride + chunk_offset<T, kHeadDim>(key_row, step * 2 + key_chunk));
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
        multiply<T>(s[tile][2 * page], q[tile], b[0], b[1]);
        multiply<T>(s[tile][2 * page + 1], q[tile], b[2], b[3]);
      }
    }
  }
}

/// The same with K of fp8.
template <int kHeadDim, int kTiles, int kPages, int kPageStride, typename LoadQ>
__device__ inline void multiply_fp8_keys(const LoadQ& load_q, uint32_t k,
                                         float (&s)[kTiles][kPages * 2][4]) {
  constexpr int kHalfSteps = kHeadDim / 32;
  const int g = threadIdx.x % 32 / 4;
  const int t = threadIdx.x % 4;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    // What the lane has of this half of its key, of each 8 keys.
    uint32_t keys[kPages][2][kHalfSteps];
    const int byte = half * (kHeadDim / 2) + t * (kHeadDim / 8);
#pragma unroll
    for (int i = 0; i < kPages * 2; ++i) {
      load_shared(keys[i / 2][i % 2], k + i / 2 * kPageStride +
                                          chunk_offset<fp8, kHeadDim>(i % 2 * 8 + g, byte / 16) +
                                          byte % 16);
    }
#pragma unroll
    for (int step = 0; step < kHalfSteps; ++step) {
      uint32_t q[kTiles][4];
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) load_q(half * kHalfSteps + step, tile, q[tile]);
#pragma unroll
      for (int i = 0; i < kPages * 2; ++i) {
        const WidenedFour b = widened_four(keys[i / 2][i % 2][step]);
#pragma unroll
        for (int tile = 0; tile < kTiles; ++tile) {
          multiply<fp16>(s[tile][i], q[tile], b.low, b.high);
        }
      }
    }
  }
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

/// out += p V, of a page of elements of 16 bits.
template <typename T, int kHeadDim, int kTiles>
__device__ inline void add_page(const uint32_t (&p)[kTiles][4], uint32_t v,
                                TileState<kHeadDim> (&states)[kTiles]) {
  const int row = threadIdx.x % 16;
  const int chunk = threadIdx.x % 32 / 16;
#pragma unroll
  for (int n = 0; n < kHeadDim / 16; ++n) {
    uint32_t b[4];
    load_transposed(b, v + chunk_offset<T, kHeadDim>(row, n * 2 + chunk));
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      multiply<T>(states[tile].out[2 * n], p[tile], b[0], b[1]);
      multiply<T>(states[tile].out[2 * n + 1], p[tile], b[2], b[3]);
    }
  }
}

/// The same with V of fp8. A matrix load moves two elements as if they were one of 16 bits: a lane
/// gets columns 2g and 2g + 1 of two keys. Columns 2g make one product, 2g + 1 another.
template <int kHeadDim, int kTiles>
__device__ inline void add_fp8_page(const uint32_t (&p)[kTiles][4], uint32_t v,
                                    TileState<kHeadDim> (&states)[kTiles]) {
  constexpr uint32_t kEvenThenOdd = 0x3120;
  const int row = threadIdx.x % 16;
  const int chunk = threadIdx.x % 32 / 16;
#pragma unroll
  for (int n = 0; n < kHeadDim / 32; ++n) {
    uint32_t b[4];
    load_transposed(b, v + chunk_offset<fp8, kHeadDim>(row, n * 2 + chunk));
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      const WidenedFour first = widened_four(__byte_perm(b[2 * c], 0, kEvenThenOdd));
      const WidenedFour second = widened_four(__byte_perm(b[2 * c + 1], 0, kEvenThenOdd));
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
        float(&out)[kHeadDim / 8][4] = states[tile].out;
        multiply<fp16>(out[4 * n + 2 * c], p[tile], first.low, second.low);
        multiply<fp16>(out[4 * n + 2 * c + 1], p[tile], first.high, second.high);
      }
    }
  }
}

/// out += s V, s being weights.
template <typename T, int kHeadDim, int kTiles, int kPages, int kPageStride>
__device__ inline void multiply_values(const float (&s)[kTiles][kPages * 2][4], uint32_t v,
                                       TileState<kHeadDim> (&states)[kTiles]) {
#pragma unroll
  for (int page = 0; page < kPages; ++page) {
    uint32_t p[kTiles][4];
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      pack_weights<Product<T>>(s[tile][2 * page], s[tile][2 * page + 1], p[tile]);
    }
    if constexpr (std::is_same_v<T, fp8>) {
      add_fp8_page<kHeadDim, kTiles>(p, v + page * kPageStride, states);
    } else {
      add_page<T, kHeadDim, kTiles>(p, v + page * kPageStride, states);
    }
  }
}

}  // namespace anyslot::cuda
