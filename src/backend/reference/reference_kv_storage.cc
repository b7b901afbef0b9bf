#include "backend/reference/reference_kv_storage.h"

#include <cstring>

namespace anyslot::reference {

ReferenceKvStorage::ReferenceKvStorage(const KvShape& shape)
    : KvStorage(shape), bytes_(shape.block_bytes() * shape.num_blocks) {}

Status ReferenceKvStorage::export_block(BlockId block, std::span<std::byte> bytes) const {
  if (Status status = check_transfer(block, bytes.size()); !status) return status;
  std::memcpy(bytes.data(), bytes_.data() + block * shape().block_bytes(), bytes.size());
  return {};
}

Status ReferenceKvStorage::import_block(BlockId block, std::span<const std::byte> bytes) {
  if (Status status = check_transfer(block, bytes.size()); !status) return status;
  std::memcpy(bytes_.data() + block * shape().block_bytes(), bytes.data(), bytes.size());
  return {};
}

std::vector<double> ReferenceKvStorage::load(int layer, KvPart part, int kv_head,
                                             int64_t slot) const {
  const std::byte* data = bytes_.data() + offset(layer, part, kv_head, slot);
  std::vector<double> values(shape().head_dim);
  for (size_t i = 0; i < values.size(); ++i) values[i] = load_element(data, shape().dtype, i);
  return values;
}

void ReferenceKvStorage::store(int layer, KvPart part, int kv_head, int64_t slot,
                               std::span<const double> values) {
  std::byte* data = bytes_.data() + offset(layer, part, kv_head, slot);
  for (size_t i = 0; i < values.size(); ++i) {
    store_element(data, shape().dtype, i, static_cast<float>(values[i]));
  }
}

size_t ReferenceKvStorage::offset(int layer, KvPart part, int kv_head, int64_t slot) const {
  int64_t index = slot / kBlockSize;
  index = index * shape().num_layers + layer;
  index = index * 2 + (part == KvPart::kValue ? 1 : 0);
  index = index * shape().num_kv_heads + kv_head;
  index = index * kBlockSize + slot % kBlockSize;
  index = index * shape().head_dim;
  return static_cast<size_t>(index) * dtype_size(shape().dtype);
}

}  // namespace anyslot::reference
