#include "backend/cuda/cuda_kv_storage.h"

#include <limits>
#include <string>
#include <utility>

#include "backend/cuda/cuda_check.h"

namespace anyslot::cuda {

namespace {

constexpr int kMaxHeadDim = 256;

}  // namespace

Expected<std::unique_ptr<CudaKvStorage>> CudaKvStorage::create(const KvShape& shape) {
  if (shape.num_layers <= 0 || shape.num_kv_heads <= 0 || shape.head_dim <= 0 ||
      shape.num_blocks < 0) {
    return invalid_argument("a KV storage needs layers, heads and a head_dim");
  }
  if (shape.dtype == DType::kFloat16) {
    return failed_precondition("KV of float16 is not served on this device: use bfloat16");
  }
  if (shape.head_dim > kMaxHeadDim || shape.head_dim % 8 != 0) {
    return failed_precondition("head_dim " + std::to_string(shape.head_dim) +
                               " is not served on this device (multiples of 8 up to " +
                               std::to_string(kMaxHeadDim) + "): use the device 'reference'");
  }
  if (shape.num_blocks >
      std::numeric_limits<int64_t>::max() / static_cast<int64_t>(shape.block_bytes())) {
    return resource_exhausted("no memory holds " + std::to_string(shape.num_blocks) +
                              " KV blocks of " + std::to_string(shape.block_bytes()) + " bytes");
  }
  DeviceMemory memory;
  if (Status status = memory.reserve(shape.block_bytes() * shape.num_blocks, "the KV pool");
      !status) {
    return status;
  }
  if (Status status = memory.clear(); !status) return status;
  return std::unique_ptr<CudaKvStorage>(new CudaKvStorage(shape, std::move(memory)));
}

Status CudaKvStorage::export_block(BlockId block, std::span<std::byte> bytes) const {
  if (Status status = check_transfer(block, bytes.size()); !status) return status;
  const size_t part = layer_block_bytes();
  return cuda_status(cudaMemcpy2D(bytes.data(), part, layer(0) + block * part, layer_bytes(), part,
                                  static_cast<size_t>(shape().num_layers), cudaMemcpyDeviceToHost),
                     "exporting a KV block");
}

Status CudaKvStorage::import_block(BlockId block, std::span<const std::byte> bytes) {
  if (Status status = check_transfer(block, bytes.size()); !status) return status;
  const size_t part = layer_block_bytes();
  return cuda_status(cudaMemcpy2D(layer(0) + block * part, layer_bytes(), bytes.data(), part, part,
                                  static_cast<size_t>(shape().num_layers), cudaMemcpyHostToDevice),
                     "importing a KV block");
}

}  // namespace anyslot::cuda
