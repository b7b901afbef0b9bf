#pragma once

#include <cstdint>
#include <span>

#include "backend/ops.h"
#include "backend/reference/reference_kv_storage.h"

namespace anyslot::reference {

/// Turns the keys of all rows and stores them and their values.
void write_kv(ReferenceKvStorage& storage, int layer, const AttentionSpec& spec,
              std::span<const Row> rows, const TensorView& k, const TensorView& v);

/// Row k of q is step.rows[row_indices[k]]. Walks the placements of each row, one key after the
/// other.
void attention(const ReferenceKvStorage& storage, int layer, const AttentionSpec& spec,
               const StepPlan& step, std::span<const int32_t> row_indices, const TensorView& q,
               const TensorView& out);

/// Copies blocks in all layers; rope: one table per layer.
void copy_blocks(ReferenceKvStorage& storage, std::span<const BlockCopy> copies,
                 std::span<const RopeTable* const> rope);

}  // namespace anyslot::reference
