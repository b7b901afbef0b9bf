#pragma once

#include <cstddef>
#include <cstdint>

#include "anyslot/status.h"
#include "backend/cuda/device_memory.h"
#include "backend/kv_storage.h"
#include "base/block.h"

namespace anyslot::cuda {

/// Tensor maps, by which the tensor memory accelerator copies halves of pages: a box is (16 tokens,
/// 64 elements) of one head's K or V of one block. For each layer there are kBlockSize maps; map
/// n - 1 shows the first n tokens of every page, and zeros for the others. Coordinates: element
/// (0), half, first token (kBlockSize: a box of zeros), page (block x [K, V] x kv_head).
class PageMaps {
 public:
  static constexpr int kHeadDim = 128;
  static constexpr size_t kBytesEach = 128;

  /// For a device of sm_90a. Empty for shapes that no kernel there reads by them.
  static Expected<PageMaps> create(const KvShape& shape, std::byte* pool);

  /// nullptr when empty.
  const std::byte* layer(int index) const {
    const auto* maps = memory_.as<const std::byte>();
    return maps == nullptr ? nullptr : maps + index * kBlockSize * kBytesEach;
  }

 private:
  DeviceMemory memory_;
};

}  // namespace anyslot::cuda
