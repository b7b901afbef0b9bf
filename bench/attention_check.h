#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "anyslot/status.h"
#include "backend/kv_storage.h"
#include "backend/ops.h"
#include "plan/step_plan.h"

namespace anyslot::bench {

/// Rows of a step that stand for all: first and last ones of its first and last requests, at most
/// `count`, and no more than the slow reference computes within seconds.
std::vector<int32_t> rows_to_check(const StepPlan& plan, int count);

/// The attention of these rows by the reference backend in float32, on the same K and V. q: float32
/// [num_rows of the step, num_heads * head_dim]. Returns [rows.size(), num_heads * head_dim].
Expected<std::vector<float>> reference_attention(const StepPlan& plan,
                                                 std::span<const int32_t> rows,
                                                 const KvStorage& storage,
                                                 const AttentionSpec& spec, const TensorView& q);

/// The largest error of a row, as a vector, over the length of what it must be. actual: float32 or
/// bfloat16, the step's rows; NaN gives infinity.
double largest_row_error(const TensorView& actual, std::span<const int32_t> rows,
                         std::span<const float> expected);

/// What a row's error may be: the rounding of Q, of the weights and of the result, and of raw keys
/// of 8 bits when they are turned.
double row_error_bound(DType dtype, DType kv_dtype);

}  // namespace anyslot::bench
