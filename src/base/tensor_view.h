#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"

namespace anyslot {

/// A row-major matrix that somebody else owns: [rows, cols], row_stride elements apart.
struct TensorView {
  void* data = nullptr;
  DType dtype = DType::kFloat32;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t row_stride = 0;

  size_t row_bytes() const { return static_cast<size_t>(cols) * dtype_size(dtype); }
  std::byte* row(int64_t r) const {
    return static_cast<std::byte*>(data) + static_cast<size_t>(r * row_stride) * dtype_size(dtype);
  }
  template <typename T>
  T* row_as(int64_t r) const {
    return reinterpret_cast<T*>(row(r));
  }

  /// Rows [begin, begin + count).
  TensorView row_range(int64_t begin, int64_t count) const {
    return {row(begin), dtype, count, cols, row_stride};
  }
  /// Columns [begin, begin + count).
  TensorView col_range(int64_t begin, int64_t count) const {
    return {static_cast<std::byte*>(data) + static_cast<size_t>(begin) * dtype_size(dtype), dtype,
            rows, count, row_stride};
  }
};

}  // namespace anyslot
