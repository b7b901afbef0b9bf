#include "kv/block_pool.h"

#include <limits>
#include <stdexcept>
#include <string>

namespace anyslot {

BlockPool::BlockPool(int64_t num_blocks) : num_blocks_(num_blocks) {
  if (num_blocks < 0 || num_blocks > std::numeric_limits<BlockId>::max()) {
    throw std::logic_error("a pool of " + std::to_string(num_blocks) +
                           " blocks: block ids are 31 bits");
  }
  is_free_.assign(static_cast<size_t>(num_blocks), true);
  free_.reserve(static_cast<size_t>(num_blocks));
  for (int64_t block = num_blocks - 1; block >= 0; --block) {
    free_.push_back(static_cast<BlockId>(block));
  }
}

std::vector<BlockId> BlockPool::allocate(int64_t count) {
  std::vector<BlockId> blocks;
  allocate(count, blocks);
  return blocks;
}

void BlockPool::allocate(int64_t count, std::vector<BlockId>& blocks) {
  if (count < 0 || count > num_free()) {
    throw std::logic_error("allocating " + std::to_string(count) + " blocks of " +
                           std::to_string(num_free()) + " free ones");
  }
  blocks.insert(blocks.end(), free_.rbegin(), free_.rbegin() + count);
  free_.resize(free_.size() - static_cast<size_t>(count));
  for (const BlockId block : std::span(blocks).last(static_cast<size_t>(count))) {
    is_free_[static_cast<size_t>(block)] = false;
  }
}

BlockId BlockPool::allocate_one() {
  if (free_.empty()) throw std::logic_error("allocating a block of none that are free");
  const BlockId block = free_.back();
  free_.pop_back();
  is_free_[static_cast<size_t>(block)] = false;
  return block;
}

void BlockPool::free(std::span<const BlockId> blocks) {
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (contains(blocks[i]) && !is_free(blocks[i])) {
      is_free_[static_cast<size_t>(blocks[i])] = true;
      continue;
    }
    for (const BlockId block : blocks.first(i)) is_free_[static_cast<size_t>(block)] = false;
    throw std::logic_error("block " + std::to_string(blocks[i]) + " of a pool of " +
                           std::to_string(num_blocks_) +
                           (contains(blocks[i]) ? " is freed twice" : " does not exist"));
  }
  // The last block of a run goes in first, so that a run handed out again keeps its order.
  free_.insert(free_.end(), blocks.rbegin(), blocks.rend());
}

}  // namespace anyslot
