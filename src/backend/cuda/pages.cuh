#pragma once

#include <cstdint>
#include <type_traits>

#include "backend/cuda/elements.cuh"
#include "backend/cuda/mma.cuh"
#include "base/block.h"

// How pages of KV, elements of type T, lie in shared memory, and which of their elements a lane g *
// 4 + t has of a product. Those of 16 bits lie as matrix loads want them. Those of fp8 become fp16
// on their way into registers: a lane reads what is contiguous, and Q and the outputs have their
// columns in the order that this gives.

namespace anyslot::cuda {

/// Bytes of the K or the V of one head of one page.
template <typename T, int kHeadDim>
inline constexpr int kPageBytes = kBlockSize* kHeadDim* static_cast<int>(sizeof(T));
/// Chunks of 16 bytes of a row, one token's.
template <typename T, int kHeadDim>
inline constexpr int kRowChunks = kHeadDim* static_cast<int>(sizeof(T)) / 16;

/// Chunk c of token r lies at c ^ a permutation of r % 8 (of r / 2 % 4, where a row is half as wide
/// as the banks), so that the 8 rows that a matrix load reads at once lie in different banks. Of
/// fp8, a lane's neighbours read half of a row side by side, and the same half of the next row: the
/// lowest bit of r chooses the half.
template <typename T, int kHeadDim>
__device__ inline uint32_t chunk_offset(int token, int chunk) {
  constexpr int kChunks = kRowChunks<T, kHeadDim>;
  uint32_t other = token & 7;
  if constexpr (std::is_same_v<T, fp8>) {
    other = kChunks == 8 ? __brev(token) >> 29 : __brev(token / 2) >> 30;
  }
  return (token * kChunks + (static_cast<uint32_t>(chunk) ^ other)) * 16;
}

/// Eight elements in a row that begin at a multiple of eight.
template <typename T, int kHeadDim>
class Eight {
 public:
  __device__ Eight(uint32_t page, int token, int index) {
    constexpr int kInChunk = 2 / static_cast<int>(sizeof(T));
    address_ = page + chunk_offset<T, kHeadDim>(token, index / kInChunk) + index % kInChunk * 8;
    load_shared(words_, address_);
  }
  __device__ void store() const { store_shared(address_, words_); }
  __device__ float2 pair(int j) const {
    if constexpr (std::is_same_v<T, fp8>) {
      return unpack<fp16>(widened(words_[j / 2] >> j % 2 * 16 & 0xffffU));
    } else {
      return unpack<T>(words_[j]);
    }
  }
  __device__ void set_pair(int j, float low, float high) {
    if constexpr (std::is_same_v<T, fp8>) {
      const uint32_t pair = narrowed(low, high) << j % 2 * 16;
      words_[j / 2] =
          j % 2 == 0 ? (words_[j / 2] & 0xffff0000U) | pair : (words_[j / 2] & 0xffffU) | pair;
    } else {
      words_[j] = pack<T>(low, high);
    }
  }

 private:
  uint32_t address_;
  uint32_t words_[2 * sizeof(T)];
};

/// The first of the two columns that a lane has of the left side of a product over 16 columns of a
/// head: half h of step `step`. Those of later steps of the same half of the head follow for fp8.
template <typename T, int kHeadDim>
__device__ inline int product_column(int step, int h) {
  const int t = static_cast<int>(threadIdx.x % 4);
  if constexpr (std::is_same_v<T, fp8>) {
    constexpr int kHalfSteps = kHeadDim / 32;
    return step / kHalfSteps * (kHeadDim / 2) + t * (kHeadDim / 8) + step % kHalfSteps * 4 + 2 * h;
  } else {
    return step * 16 + h * 8 + 2 * t;
  }
}

/// Calls store(column, low, high) for the elements that a lane has of row i (of two) of the
/// outputs, two in a row at a time.
template <typename T, int kHeadDim, typename Store>
__device__ inline void for_each_output(const float (&out)[kHeadDim / 8][4], int i,
                                       const Store& store) {
  const int t = static_cast<int>(threadIdx.x % 4);
#pragma unroll
  for (int n = 0; n < kHeadDim / 8; n += 2) {
    if constexpr (std::is_same_v<T, fp8>) {
      store(n * 8 + 4 * t, out[n][2 * i], out[n + 1][2 * i]);
      store(n * 8 + 4 * t + 2, out[n][2 * i + 1], out[n + 1][2 * i + 1]);
    } else {
      store(n * 8 + 2 * t, out[n][2 * i], out[n][2 * i + 1]);
      store(n * 8 + 8 + 2 * t, out[n + 1][2 * i], out[n + 1][2 * i + 1]);
    }
  }
}

}  // namespace anyslot::cuda
