#pragma once

#include <memory>
#include <span>
#include <vector>

#include "backend/cpu/cpu_kv_storage.h"
#include "backend/cpu/kernels.h"
#include "backend/ops.h"
#include "base/tensor_view.h"
#include "base/thread_pool.h"

namespace anyslot::cpu {

/// Writes to the KV pool. Arguments have been checked.
class KvWriter {
 public:
  /// Both must outlive it.
  KvWriter(const KernelTable& kernels, ThreadPool& threads);

  /// See Backend::write_kv.
  void write(CpuKvStorage& storage, int layer, const AttentionSpec& spec, std::span<const Row> rows,
             const TensorView& k, const TensorView& v);

  /// See Backend::copy_blocks.
  void copy(CpuKvStorage& storage, std::span<const BlockCopy> copies,
            std::span<const RopeTable* const> rope);

 private:
  const KvKernels& kernels_of(const CpuKvStorage& storage) const;
  void clear_new_blocks(CpuKvStorage& storage, int layer, std::span<const Row> rows) const;
  void copy_block(CpuKvStorage& storage, int layer, const BlockCopy& order, BlockId next,
                  const Turn& turn) const;

  const KernelTable& kernels_;
  ThreadPool& threads_;
};

}  // namespace anyslot::cpu
