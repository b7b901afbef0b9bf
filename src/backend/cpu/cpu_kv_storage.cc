#include "backend/cpu/cpu_kv_storage.h"

#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "backend/cpu/kernels.h"
#include "backend/op_checks.h"
#include "backend/ops.h"

namespace anyslot::cpu {

namespace {

static_assert(kBlockTokens == kBlockSize);

/// Calls visit(canonical offset, packed offset), in bytes, for each element of one head.
template <typename Visit>
void visit_elements(KvPart part, const KvShape& shape, const Visit& visit) {
  const auto element_bytes = static_cast<int>(dtype_size(shape.dtype));
  const int pack = pack_of(shape.dtype);
  const int head_dim = shape.head_dim;
  for (int token = 0; token < kBlockSize; ++token) {
    for (int d = 0; d < head_dim; ++d) {
      const int packed = part == KvPart::kKey
                             ? d / pack * kBlockSize * pack + token * pack + d % pack
                             : token / pack * head_dim * pack + d * pack + token % pack;
      visit((token * head_dim + d) * element_bytes, packed * element_bytes);
    }
  }
}

Status check_shape(const KvShape& shape) {
  if (Status status = check_kv_shape(shape); !status) return status;
  if (shape.dtype == DType::kFloat16) {
    return failed_precondition(
        "KV of float16 is not served by the CPU backend: use bfloat16, float32 or fp8_e4m3");
  }
  return check_cpu_needs({.head_dim = shape.head_dim});
}

}  // namespace

Expected<std::unique_ptr<CpuKvStorage>> CpuKvStorage::create(const KvShape& shape) {
  if (Status status = check_shape(shape); !status) return status;
  const size_t block_bytes = shape.block_bytes();
  if (static_cast<size_t>(shape.num_blocks) > std::numeric_limits<ptrdiff_t>::max() / block_bytes) {
    return resource_exhausted("no memory for " + std::to_string(shape.num_blocks) +
                              " KV blocks of " + std::to_string(block_bytes) + " bytes");
  }
  Expected<HostMemory> memory =
      HostMemory::allocate(block_bytes * static_cast<size_t>(shape.num_blocks), "the KV pool");
  if (!memory) return memory.status();
  return std::unique_ptr<CpuKvStorage>(new CpuKvStorage(shape, std::move(*memory)));
}

CpuKvStorage::CpuKvStorage(const KvShape& shape, HostMemory memory)
    : KvStorage(shape),
      memory_(std::move(memory)),
      head_bytes_(size_t{kBlockSize} * shape.head_dim * dtype_size(shape.dtype)) {}

Status CpuKvStorage::export_block(BlockId block, std::span<std::byte> bytes) const {
  if (Status status = check_transfer(block, bytes.size()); !status) return status;
  const size_t element_bytes = dtype_size(shape().dtype);
  std::byte* out = bytes.data();
  for (int layer = 0; layer < shape().num_layers; ++layer) {
    for (const KvPart part : {KvPart::kKey, KvPart::kValue}) {
      for (int h = 0; h < shape().num_kv_heads; ++h, out += head_bytes_) {
        const std::byte* packed = head(layer, block, part, h);
        visit_elements(part, shape(), [&](int canonical_offset, int packed_offset) {
          std::memcpy(out + canonical_offset, packed + packed_offset, element_bytes);
        });
      }
    }
  }
  return {};
}

Status CpuKvStorage::import_block(BlockId block, std::span<const std::byte> bytes) {
  if (Status status = check_transfer(block, bytes.size()); !status) return status;
  const size_t element_bytes = dtype_size(shape().dtype);
  const std::byte* in = bytes.data();
  for (int layer = 0; layer < shape().num_layers; ++layer) {
    for (const KvPart part : {KvPart::kKey, KvPart::kValue}) {
      for (int h = 0; h < shape().num_kv_heads; ++h, in += head_bytes_) {
        std::byte* packed = head(layer, block, part, h);
        visit_elements(part, shape(), [&](int canonical_offset, int packed_offset) {
          std::memcpy(packed + packed_offset, in + canonical_offset, element_bytes);
        });
      }
    }
  }
  return {};
}

}  // namespace anyslot::cpu
