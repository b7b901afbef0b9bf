#pragma once

#include <cstdint>

namespace anyslot {

/// A page of the KV pool.
using BlockId = int32_t;

/// Token slots of one block, in every layer.
inline constexpr int kBlockSize = 16;

constexpr int64_t blocks_for(int64_t num_tokens) {
  return (num_tokens + kBlockSize - 1) / kBlockSize;
}

}  // namespace anyslot
