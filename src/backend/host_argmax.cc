#include <algorithm>
#include <cmath>
#include <span>

#include "backend/op_checks.h"
#include "backend/ops.h"

namespace anyslot {

Status Backend::argmax(const TensorView& x, std::span<int32_t> out) {
  const auto num_rows = static_cast<int64_t>(out.size());
  if (Status status = check_tensor("x", x, num_rows, x.cols, DType::kFloat32); !status) {
    return status;
  }
  for (int64_t r = 0; r < num_rows; ++r) {
    const std::span<const float> row(x.row_as<float>(r), static_cast<size_t>(x.cols));
    const bool finite = std::ranges::all_of(row, [](float value) { return std::isfinite(value); });
    const auto place = std::ranges::max_element(row) - row.begin();
    out[static_cast<size_t>(r)] = finite && !row.empty() ? static_cast<int32_t>(place) : -1;
  }
  return {};
}

}  // namespace anyslot
