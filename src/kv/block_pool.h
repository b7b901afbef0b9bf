#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/block.h"

namespace anyslot {

/// Which blocks are free. Knows ids only. Blocks freed last are handed out first.
class BlockPool {
 public:
  /// Throws std::logic_error for a negative count.
  explicit BlockPool(int64_t num_blocks);

  int64_t num_blocks() const { return num_blocks_; }
  int64_t num_free() const { return static_cast<int64_t>(free_.size()); }

  /// Takes `count` blocks; the caller has checked num_free(), std::logic_error otherwise.
  std::vector<BlockId> allocate(int64_t count);
  /// The same, appended to `blocks`: takes no memory when those have room for them.
  void allocate(int64_t count, std::vector<BlockId>& blocks);
  /// Takes one; the caller has checked num_free(), std::logic_error otherwise.
  BlockId allocate_one();
  /// Gives blocks back. Throws std::logic_error, and frees none of them, when one of them is no
  /// block of this pool, is free already, or is listed twice.
  void free(std::span<const BlockId> blocks);

  bool contains(BlockId block) const { return block >= 0 && block < num_blocks_; }
  /// Only for a block of this pool.
  bool is_free(BlockId block) const { return is_free_[static_cast<size_t>(block)]; }

 private:
  friend struct KvCacheTestAccess;

  int64_t num_blocks_;
  std::vector<BlockId> free_;
  std::vector<bool> is_free_;
};

}  // namespace anyslot
