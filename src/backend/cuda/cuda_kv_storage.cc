#include "backend/cuda/cuda_kv_storage.h"

#include <limits>
#include <string>
#include <utility>

#include "backend/cuda/cuda_check.h"
#include "backend/op_checks.h"
#include "backend/ops.h"

namespace anyslot::cuda {

Expected<std::unique_ptr<CudaKvStorage>> CudaKvStorage::create(const KvShape& shape,
                                                               bool has_page_maps) {
  if (Status status = check_kv_shape(shape); !status) return status;
  if (Status status = check_cuda_needs({.head_dim = shape.head_dim}); !status) return status;
  if (shape.num_blocks >
      std::numeric_limits<int64_t>::max() / static_cast<int64_t>(shape.block_bytes())) {
    return resource_exhausted("no memory holds " + std::to_string(shape.num_blocks) +
                              " KV blocks of " + std::to_string(shape.block_bytes()) + " bytes");
  }
  DeviceMemory memory;
  const Status reserved = memory.reserve(shape.block_bytes() * shape.num_blocks, "the KV pool");
  if (!reserved) {
    return Status(reserved.code(), reserved.message() +
                                       "; lower --kv-cache, or end other programs "
                                       "on the GPU");
  }
  if (Status status = memory.clear(); !status) return status;
  Expected<PageMaps> page_maps =
      has_page_maps ? PageMaps::create(shape, memory.as<std::byte>()) : PageMaps();
  if (!page_maps) return page_maps.status();
  return std::unique_ptr<CudaKvStorage>(
      new CudaKvStorage(shape, std::move(memory), std::move(*page_maps)));
}

// One copy with a stride per block would do, if strides could exceed 2 GiB.

Status CudaKvStorage::export_block(BlockId block, std::span<std::byte> bytes) const {
  Status status = check_transfer(block, bytes.size());
  const size_t part = layer_block_bytes();
  for (int i = 0; status.ok() && i < shape().num_layers; ++i) {
    status = cuda_status(
        cudaMemcpy(bytes.data() + i * part, layer(i) + block * part, part, cudaMemcpyDeviceToHost),
        "exporting a KV block");
  }
  return status;
}

Status CudaKvStorage::import_block(BlockId block, std::span<const std::byte> bytes) {
  Status status = check_transfer(block, bytes.size());
  const size_t part = layer_block_bytes();
  for (int i = 0; status.ok() && i < shape().num_layers; ++i) {
    status = cuda_status(
        cudaMemcpy(layer(i) + block * part, bytes.data() + i * part, part, cudaMemcpyHostToDevice),
        "importing a KV block");
  }
  return status;
}

}  // namespace anyslot::cuda
