#include "backend/cpu/kv_ops.h"

#include <algorithm>
#include <cstring>

#include "backend/cpu/kernel_list.h"

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
  return kv_kernels_of(kernels_, storage.shape().dtype);
}

/// Attention multiplies all slots of a block by their weights, unused ones by 0, so what an earlier
/// owner left there must be finite.
void KvWriter::clear_new_blocks(CpuKvStorage& storage, int layer, std::span<const Row> rows) const {
  for (const Row& row : rows) {
    if (row.write_slot % kBlockSize != 0) continue;
    const auto block = static_cast<BlockId>(row.write_slot / kBlockSize);
    for (int head = 0; head < storage.shape().num_kv_heads; ++head) {
      std::memset(storage.head(layer, block, KvPart::kValue, head), 0, storage.head_bytes());
    }
  }
}

void KvWriter::write(CpuKvStorage& storage, int layer, const AttentionSpec& spec,
                     std::span<const Row> rows, const TensorView& k, const TensorView& v) {
  clear_new_blocks(storage, layer, rows);
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
  constexpr int64_t kCopiesOfTask = 8;
  const KvShape& shape = storage.shape();
  const auto num_copies = static_cast<int64_t>(copies.size());
  const int64_t tasks_of_layer = (num_copies + kCopiesOfTask - 1) / kCopiesOfTask;
  const auto copy_some = [&](int64_t task) {
    const auto layer = static_cast<int>(task / tasks_of_layer);
    const int64_t begin = task % tasks_of_layer * kCopiesOfTask;
    const int64_t end = std::min(num_copies, begin + kCopiesOfTask);
    Angles angles;
    Turn turn;
    for (int64_t c = begin; c < end; ++c) {
      const BlockCopy& order = copies[c];
      if (c == begin || order.turn_by != copies[c - 1].turn_by) {
        turn = angles.turn(*rope[layer], order.turn_by);
      }
      copy_block(storage, layer, order, copies[std::min(c + 1, end - 1)].src, turn);
    }
  };
  threads_.parallel_for(tasks_of_layer * shape.num_layers,
                        [&copy_some](int64_t task, int) { copy_some(task); });
}

/// Slots beyond order.num_tokens are copied too, finite as they are. `next`:
/// the block that is copied after this one.
void KvWriter::copy_block(CpuKvStorage& storage, int layer, const BlockCopy& order, BlockId next,
                          const Turn& turn) const {
  const KvShape& shape = storage.shape();
  if (order.turn_by == 0) {  // a block's heads lie side by side, keys first
    std::memcpy(storage.head(layer, order.dst, KvPart::kKey, 0),
                storage.head(layer, order.src, KvPart::kKey, 0),
                storage.head_bytes() * 2 * static_cast<size_t>(shape.num_kv_heads));
    return;
  }
  for (int head = 0; head < shape.num_kv_heads; ++head) {
    kernels_of(storage).turn_block(storage.head(layer, order.src, KvPart::kKey, head),
                                   storage.head(layer, next, KvPart::kKey, head),
                                   storage.head(layer, order.dst, KvPart::kKey, head),
                                   shape.head_dim, turn);
    std::memcpy(storage.head(layer, order.dst, KvPart::kValue, head),
                storage.head(layer, order.src, KvPart::kValue, head), storage.head_bytes());
  }
}

}  // namespace anyslot::cpu
