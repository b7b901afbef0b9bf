#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "anyslot/status.h"
#include "backend/kv_storage.h"
#include "backend/ops.h"
#include "base/tensor_view.h"
#include "plan/step_plan.h"

// What every backend asks of the arguments of its operations. Failures are kInvalidArgument.

namespace anyslot {

Status check_tensor(std::string_view name, const TensorView& x, int64_t rows, int64_t cols,
                    DType dtype);

/// The layer exists and its heads are those of the pool.
Status check_spec(const AttentionSpec& spec, const KvShape& shape, int layer);

/// All rows write inside of the pool.
Status check_write_slots(std::span<const Row> rows, const KvShape& shape);

/// All copies stay inside of the pool, and each layer has a rope that fits its heads.
Status check_copies(std::span<const BlockCopy> copies, std::span<const RopeTable* const> rope,
                    const KvShape& shape);

/// All rows have a row in the embedding table.
Status check_token_ids(std::span<const Row> rows, const TensorView& table);

}  // namespace anyslot
