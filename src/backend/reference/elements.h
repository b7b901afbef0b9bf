#pragma once

#include <span>
#include <vector>

#include "backend/rope.h"
#include "base/tensor_view.h"

namespace anyslot::reference {

/// Elements [begin, begin + count) of a row.
std::vector<double> load_row(const TensorView& x, int64_t row, int64_t begin, int64_t count);
std::vector<double> load_row(const TensorView& x, int64_t row);
void store_row(const TensorView& x, int64_t row, int64_t begin, std::span<const double> values);

/// Turns the first 2 * inv_freq.size() elements of a head by the angles of `position`.
void turn(std::span<double> head, const RopeParameters& rope, int64_t position);

}  // namespace anyslot::reference
