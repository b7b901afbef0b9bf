#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "anyslot/status.h"
#include "base/dtype.h"
#include "plan/step_plan.h"

namespace anyslot {

struct KvShape {
  int num_layers = 0;
  int num_kv_heads = 0;
  int head_dim = 0;
  DType dtype = DType::kBFloat16;
  int64_t num_blocks = 0;

  /// Bytes of one block in all layers, K and V.
  size_t block_bytes() const {
    return size_t{2} * num_layers * num_kv_heads * kBlockSize * head_dim * dtype_size(dtype);
  }
};

/// Owns the bytes of the KV pool. The inside of a block is the backend's own affair.
class KvStorage {
 public:
  virtual ~KvStorage() = default;

  const KvShape& shape() const { return shape_; }

  /// Canonical bytes of a block: [layer][K, V][kv_head][token][head_dim], little-endian;
  /// block_bytes() long. Both fail with kInvalidArgument for another size and for a block outside
  /// of the pool. Blocks start as zeros.
  virtual Status export_block(BlockId block, std::span<std::byte> bytes) const = 0;
  virtual Status import_block(BlockId block, std::span<const std::byte> bytes) = 0;

 protected:
  explicit KvStorage(const KvShape& shape) : shape_(shape) {}

  /// What export_block and import_block ask of their arguments.
  Status check_transfer(BlockId block, size_t num_bytes) const;

 private:
  KvShape shape_;
};

}  // namespace anyslot
