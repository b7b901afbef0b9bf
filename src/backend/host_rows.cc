#include <cmath>
#include <cstddef>
#include <cstring>
#include <span>

#include "backend/op_checks.h"
#include "backend/ops.h"

// Operations on rows as a backend has them that does not bring its own: in host memory, plainly.

namespace anyslot {

Status Backend::rms_norm_parts(const TensorView& x, std::span<const float> weight, float epsilon) {
  if (Status status = check_rms_norm_parts(x, weight); !status) return status;
  const size_t part = weight.size();
  for (int64_t r = 0; r < x.rows; ++r) {
    const std::span<float> row(x.row_as<float>(r), static_cast<size_t>(x.cols));
    for (size_t begin = 0; begin < row.size(); begin += part) {
      double sum = 0;
      for (const double value : row.subspan(begin, part)) sum += value * value;
      const double factor = 1 / std::sqrt(sum / static_cast<double>(part) + epsilon);
      for (size_t i = 0; i < part; ++i) {
        row[begin + i] = static_cast<float>(row[begin + i] * factor * weight[i]);
      }
    }
  }
  return {};
}

Status Backend::add_bias(const TensorView& x, std::span<const float> bias) {
  if (Status status = check_add_bias(x, bias); !status) return status;
  for (int64_t r = 0; r < x.rows; ++r) {
    auto* row = x.row_as<float>(r);
    for (size_t c = 0; c < bias.size(); ++c) row[c] += bias[c];
  }
  return {};
}

Status Backend::scale(const TensorView& x, float factor, const TensorView& out) {
  if (Status status = check_scale(x, out, activation_dtype()); !status) return status;
  for (int64_t r = 0; r < x.rows; ++r) {
    const auto* row = x.row_as<float>(r);
    for (int64_t c = 0; c < x.cols; ++c) {
      store_element(out.row(r), out.dtype, static_cast<size_t>(c), factor * row[c]);
    }
  }
  return {};
}

Status Backend::add_scaled(const TensorView& x, float factor, const TensorView& out) {
  if (Status status = check_add_scaled(x, out); !status) return status;
  for (int64_t r = 0; r < x.rows; ++r) {
    const auto* row = x.row_as<float>(r);
    for (int64_t c = 0; c < x.cols; ++c) out.row_as<float>(r)[c] += factor * row[c];
  }
  return {};
}

Status Backend::soft_cap(const TensorView& x, float cap) {
  if (Status status = check_soft_cap(x, cap); !status) return status;
  for (int64_t r = 0; r < x.rows; ++r) {
    auto* row = x.row_as<float>(r);
    for (int64_t c = 0; c < x.cols; ++c) {
      row[c] = static_cast<float>(cap * std::tanh(double{row[c]} / cap));
    }
  }
  return {};
}

Status Backend::gather_rows(const TensorView& x, std::span<const int32_t> rows,
                            const TensorView& out) {
  if (Status status = check_gather_rows(x, rows, out, activation_dtype()); !status) return status;
  for (size_t k = 0; k < rows.size(); ++k) {
    std::memcpy(out.row(static_cast<int64_t>(k)), x.row(rows[k]), x.row_bytes());
  }
  return {};
}

Status Backend::add_rows(const TensorView& x, std::span<const int32_t> rows,
                         std::span<const float> shares, const TensorView& out) {
  if (Status status = check_add_rows(x, rows, shares, out); !status) return status;
  for (size_t k = 0; k < rows.size(); ++k) {
    const auto* from = x.row_as<float>(static_cast<int64_t>(k));
    auto* to = out.row_as<float>(rows[k]);
    for (int64_t c = 0; c < x.cols; ++c) to[c] += shares[k] * from[c];
  }
  return {};
}

}  // namespace anyslot
