#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "backend/cpu/host_memory.h"
#include "backend/kv_storage.h"

namespace anyslot::cpu {

enum class KvPart : uint8_t { kKey, kValue };

/// The KV pool in memory: [layer][block][kv_head][K, V], each of 16 x head_dim elements packed as
/// KvKernels says. Attention reads one head's K and V of blocks that lie anywhere: side by side
/// they share pages, and finding a page takes about as long as reading half of it.
class CpuKvStorage : public KvStorage {
 public:
  /// Fails with kFailedPrecondition for shapes that the kernels do not serve, with
  /// kResourceExhausted for want of memory.
  static Expected<std::unique_ptr<CpuKvStorage>> create(const KvShape& shape);

  Status export_block(BlockId block, std::span<std::byte> bytes) const override;
  Status import_block(BlockId block, std::span<const std::byte> bytes) override;

  /// Bytes of one part of one head in one block.
  size_t head_bytes() const { return head_bytes_; }
  std::byte* head(int layer, BlockId block, KvPart part, int kv_head) const {
    const size_t block_index =
        static_cast<size_t>(layer) * static_cast<size_t>(shape().num_blocks) +
        static_cast<size_t>(block);
    const size_t part_index = part == KvPart::kKey ? 0 : 1;
    const size_t head_index =
        (block_index * shape().num_kv_heads + static_cast<size_t>(kv_head)) * 2 + part_index;
    return memory_.data() + head_index * head_bytes_;
  }

 private:
  CpuKvStorage(const KvShape& shape, HostMemory memory);

  HostMemory memory_;
  size_t head_bytes_;
};

}  // namespace anyslot::cpu
