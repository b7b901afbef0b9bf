#include "backend/cpu/kv_ops.h"

#include <algorithm>
#include <cstring>

namespace anyslot::cpu {

namespace {

/// Cosines and sines of one position.
struct Angles {
  alignas(64) float cosine[kMaxHeadDim / 2];
  alignas(64) float sine[kMaxHeadDim / 2];

  Turn turn(const RopeTable& rope, int64_t position) {
    rope.cos_sin(position, cosine, sine);
    return {cosine, sine, rope.num_pairs()};
  }
};

}  // namespace

KvWriter::KvWriter(const KernelTable& kernels, ThreadPool& threads)
    : kernels_(kernels), threads_(threads) {}

const KvKernels& KvWriter::kernels_of(const CpuKvStorage& storage) const {
  return storage.shape().dtype == DType::kFloat32 ? *kernels_.float32_kv : *kernels_.bfloat16_kv;
}

void KvWriter::write(CpuKvStorage& storage, int layer, const AttentionSpec& spec,
                     std::span<const Row> rows, const TensorView& k, const TensorView& v) {
  const KvKernels& kv = kernels_of(storage);
  constexpr int64_t kRowsOfTask = 16;
  const auto num_rows = static_cast<int64_t>(rows.size());
  const auto write_rows = [&](int64_t task) {
    Angles angles;
    const int64_t end = std::min(num_rows, (task + 1) * kRowsOfTask);
    for (int64_t r = task * kRowsOfTask; r < end; ++r) {
      const Turn turn = angles.turn(*spec.rope, rows[r].write_angle);
      const auto block = static_cast<BlockId>(rows[r].write_slot / kBlockSize);
      for (int head = 0; head < spec.num_kv_heads; ++head) {
        const TokenSlot slot{storage.head(layer, block, KvPart::kKey, head),
                             storage.head(layer, block, KvPart::kValue, head),
                             static_cast<int>(rows[r].write_slot % kBlockSize)};
        const int64_t column = int64_t{head} * spec.head_dim;
        kv.store_token(slot, spec.head_dim, turn, k.row_as<float>(r) + column,
                       v.row_as<float>(r) + column);
      }
    }
  };
  threads_.parallel_for((num_rows + kRowsOfTask - 1) / kRowsOfTask,
                        [&write_rows](int64_t task, int) { write_rows(task); });
}

void KvWriter::copy(CpuKvStorage& storage, std::span<const BlockCopy> copies,
                    std::span<const RopeTable* const> rope) {
  const KvKernels& kv = kernels_of(storage);
  const KvShape& shape = storage.shape();
  const auto num_copies = static_cast<int64_t>(copies.size());
  const auto copy_block = [&](int64_t task) {
    const auto layer = static_cast<int>(task / num_copies);
    const BlockCopy& order = copies[task % num_copies];
    Angles angles;
    const Turn turn = angles.turn(*rope[layer], order.turn_by);
    // Slots beyond order.num_tokens are copied too: nobody reads them before they are written.
    for (int head = 0; head < shape.num_kv_heads; ++head) {
      const std::byte* key = storage.head(layer, order.src, KvPart::kKey, head);
      std::byte* copied_key = storage.head(layer, order.dst, KvPart::kKey, head);
      if (order.turn_by == 0) {
        std::memcpy(copied_key, key, storage.head_bytes());
      } else {
        kv.turn_block(key, copied_key, shape.head_dim, turn);
      }
      std::memcpy(storage.head(layer, order.dst, KvPart::kValue, head),
                  storage.head(layer, order.src, KvPart::kValue, head), storage.head_bytes());
    }
  };
  threads_.parallel_for(num_copies * shape.num_layers,
                        [&copy_block](int64_t task, int) { copy_block(task); });
}

}  // namespace anyslot::cpu
