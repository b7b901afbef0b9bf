#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "anyslot/status.h"
#include "backend/rope.h"
#include "base/tensor_view.h"

namespace anyslot::reference {

double load_element(const void* data, DType dtype, size_t index);
/// Rounds to dtype, which is float32 or bfloat16.
void store_element(void* data, DType dtype, size_t index, double value);

/// Elements [begin, begin + count) of a row.
std::vector<double> load_row(const TensorView& x, int64_t row, int64_t begin, int64_t count);
std::vector<double> load_row(const TensorView& x, int64_t row);
void store_row(const TensorView& x, int64_t row, int64_t begin, std::span<const double> values);

/// Turns the first 2 * inv_freq.size() elements of a head by the angles of `position`.
void turn(std::span<double> head, const RopeParameters& rope, int64_t position);

}  // namespace anyslot::reference
