#pragma once

#include <span>
#include <vector>

#include "backend/kv_storage.h"

namespace anyslot::reference {

enum class KvPart : uint8_t { kKey, kValue };

/// Blocks as their canonical bytes, one after the other.
class ReferenceKvStorage : public KvStorage {
 public:
  explicit ReferenceKvStorage(const KvShape& shape);

  Status export_block(BlockId block, std::span<std::byte> bytes) const override;
  Status import_block(BlockId block, std::span<const std::byte> bytes) override;

  int64_t num_slots() const { return shape().num_blocks * kBlockSize; }

  /// The head_dim elements of one token. slot: block * kBlockSize + place in the block, below
  /// num_slots().
  std::vector<double> load(int layer, KvPart part, int kv_head, int64_t slot) const;
  void store(int layer, KvPart part, int kv_head, int64_t slot, std::span<const double> values);

 private:
  size_t offset(int layer, KvPart part, int kv_head, int64_t slot) const;  // in bytes

  std::vector<std::byte> bytes_;
};

}  // namespace anyslot::reference
