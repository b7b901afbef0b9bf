#pragma once

#include <memory>
#include <span>

#include "backend/cuda/device_memory.h"
#include "backend/cuda/page_maps.h"
#include "backend/kv_storage.h"

namespace anyslot::cuda {

/// Blocks in device memory: [layer][block][K, V][kv_head][token][head_dim], so that a head of a
/// block is contiguous, and so are K and V of all heads of a layer.
class CudaKvStorage : public KvStorage {
 public:
  /// has_page_maps: with those that PageMaps makes for the shape. kFailedPrecondition for a dtype
  /// or head_dim that is not served; kResourceExhausted with sizes.
  static Expected<std::unique_ptr<CudaKvStorage>> create(const KvShape& shape, bool has_page_maps);

  Status export_block(BlockId block, std::span<std::byte> bytes) const override;
  Status import_block(BlockId block, std::span<const std::byte> bytes) override;

  /// Bytes of one block in one layer.
  size_t layer_block_bytes() const { return shape().block_bytes() / shape().num_layers; }
  size_t layer_bytes() const { return layer_block_bytes() * shape().num_blocks; }
  std::byte* layer(int index) const { return memory_.as<std::byte>() + index * layer_bytes(); }
  /// nullptr where there are none.
  const std::byte* page_maps(int layer) const { return page_maps_.layer(layer); }

 private:
  CudaKvStorage(const KvShape& shape, DeviceMemory memory, PageMaps page_maps)
      : KvStorage(shape), memory_(std::move(memory)), page_maps_(std::move(page_maps)) {}

  DeviceMemory memory_;
  PageMaps page_maps_;
};

}  // namespace anyslot::cuda
