#include "backend/op_checks.h"

#include <algorithm>
#include <string>

namespace anyslot {

Status check_tensor(std::string_view name, const TensorView& x, int64_t rows, int64_t cols,
                    DType dtype) {
  if (x.rows == rows && x.cols == cols && x.dtype == dtype) return {};
  const auto describe = [](int64_t r, int64_t c, DType type) {
    return std::string("[") + std::to_string(r) + ", " + std::to_string(c) + "] " +
           std::string(dtype_name(type));
  };
  return invalid_argument("tensor " + std::string(name) + " is " +
                          describe(x.rows, x.cols, x.dtype) + ", must be " +
                          describe(rows, cols, dtype));
}

Status check_spec(const AttentionSpec& spec, const KvShape& shape, int layer) {
  if (layer < 0 || layer >= shape.num_layers) {
    return invalid_argument("layer " + std::to_string(layer) + " of a storage of " +
                            std::to_string(shape.num_layers) + " layers");
  }
  if (spec.num_kv_heads != shape.num_kv_heads || spec.head_dim != shape.head_dim) {
    return invalid_argument("heads of the layer and of the KV storage differ");
  }
  if (spec.num_heads % spec.num_kv_heads != 0) {
    return invalid_argument("num_heads must be a multiple of num_kv_heads");
  }
  if (2 * spec.rope->num_pairs() > spec.head_dim) {
    return invalid_argument("the rotary dimension exceeds head_dim");
  }
  return {};
}

Status check_write_slots(std::span<const Row> rows, const KvShape& shape) {
  const int64_t num_slots = shape.num_blocks * kBlockSize;
  for (const Row& row : rows) {
    if (row.write_slot >= 0 && row.write_slot < num_slots) continue;
    return invalid_argument("slot " + std::to_string(row.write_slot) + " is outside of the " +
                            std::to_string(num_slots) + " slots of the KV pool");
  }
  return {};
}

Status check_copies(std::span<const BlockCopy> copies, std::span<const RopeTable* const> rope,
                    const KvShape& shape) {
  if (static_cast<int>(rope.size()) != shape.num_layers) {
    return invalid_argument("copy_blocks needs one rope table per layer");
  }
  for (const RopeTable* table : rope) {
    if (2 * table->num_pairs() > shape.head_dim) {
      return invalid_argument("the rotary dimension exceeds head_dim");
    }
  }
  for (const BlockCopy& copy : copies) {
    if (std::min(copy.src, copy.dst) >= 0 && std::max(copy.src, copy.dst) < shape.num_blocks) {
      continue;
    }
    return invalid_argument("a copy from block " + std::to_string(copy.src) + " to block " +
                            std::to_string(copy.dst) + " leaves the pool of " +
                            std::to_string(shape.num_blocks) + " blocks");
  }
  return {};
}

Status check_token_ids(std::span<const Row> rows, const TensorView& table) {
  for (const Row& row : rows) {
    if (row.token_id >= 0 && row.token_id < table.rows) continue;
    return invalid_argument("token id " + std::to_string(row.token_id) + " is outside of the " +
                            std::to_string(table.rows) + " rows of the embedding");
  }
  return {};
}

}  // namespace anyslot
