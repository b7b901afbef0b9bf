#pragma once

#include <algorithm>
#include <cstdint>

namespace anyslot::internal {

/// Blocks of the KV pool that takes at most so many bytes: ids fit int32, and slots of all blocks
/// comfortably int64.
constexpr int64_t num_pool_blocks(int64_t kv_cache_bytes, int64_t block_bytes) {
  return std::min(kv_cache_bytes / block_bytes, int64_t{1} << 30);
}

}  // namespace anyslot::internal
