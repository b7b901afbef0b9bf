#include "backend/kv_storage.h"

#include <string>

namespace anyslot {

Status KvStorage::check_transfer(BlockId block, size_t num_bytes) const {
  if (block < 0 || block >= shape_.num_blocks) {
    return invalid_argument("block " + std::to_string(block) + " is outside of the pool of " +
                            std::to_string(shape_.num_blocks) + " blocks");
  }
  if (num_bytes != shape_.block_bytes()) {
    return invalid_argument("a block has " + std::to_string(shape_.block_bytes()) +
                            " bytes, given are " + std::to_string(num_bytes));
  }
  return {};
}

}  // namespace anyslot
