#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/panel_formats.h"

namespace anyslot::cpu {
namespace {  // NOLINT: each instruction set has its own copy, compiled with its own flags

/// A few rows times a panel: each weight is loaded once per kRows rows and meets them in registers.
template <typename Format>
struct PanelMultiply {
  using S = typename Format::Simd;
  using Element = typename Format::Element;
  using Operand = typename Format::Operand;
  static constexpr int kCols = kPanelColumns / S::kLanes;
  /// Bytes of weights between the one in use and the one being fetched.
  static constexpr int64_t kAhead = 2048;

  template <int kNumRows>
  static void multiply_rows(const PanelProduct& product, int first_row) {
    typename Format::Sum sums[kNumRows][kCols];
    const Operand* rows[kNumRows];
#pragma GCC unroll 8
    for (int r = 0; r < kNumRows; ++r) {
      rows[r] = reinterpret_cast<const Operand*>(product.operands +
                                                 (first_row + r) * product.operand_stride);
#pragma GCC unroll 8
      for (int c = 0; c < kCols; ++c) sums[r][c] = Format::zero();
    }
    const auto* weights = reinterpret_cast<const Element*>(product.panel);
    constexpr int kStep = kPanelColumns * Format::kGroup;  // elements
    for (int64_t i = 0; i < product.padded_in; i += Format::kGroup, weights += kStep) {
      const char* ahead = reinterpret_cast<const char*>(weights) + kAhead;
#pragma GCC unroll 8
      for (size_t b = 0; b < kStep * sizeof(Element); b += 64) __builtin_prefetch(ahead + b);
#pragma GCC unroll 8
      for (int c = 0; c < kCols; ++c) {
        const typename Format::Packed packed =
            Format::load(weights + c * S::kLanes * Format::kGroup);
#pragma GCC unroll 8
        for (int r = 0; r < kNumRows; ++r) {
          Format::add_product(sums[r][c], packed, rows[r] + i, product.padded_in);
        }
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < kNumRows; ++r) {
#pragma GCC unroll 8
      for (int c = 0; c < kCols; ++c) {
        store(product, first_row + r, c * S::kLanes,
              Format::finish(sums[r][c], product, rows[r], c * S::kLanes));
      }
    }
  }

  static void store(const PanelProduct& product, int row, int column, typename S::Vec x) {
    const int64_t count = product.num_columns - column;
    if (count <= 0) return;
    float* out = product.out + row * product.out_stride + column;
    if (product.accumulate) x = S::add(x, load_some<S>(out, count));
    store_some<S>(out, x, count);
  }

  static void multiply(const PanelProduct& product) {
    int row = 0;
    if constexpr (Format::kRows >= 4) {
      for (; row + 4 <= product.num_rows; row += 4) multiply_rows<4>(product, row);
    }
    if constexpr (Format::kRows >= 2) {
      for (; row + 2 <= product.num_rows; row += 2) multiply_rows<2>(product, row);
    }
    for (; row < product.num_rows; ++row) multiply_rows<1>(product, row);
  }
};

template <typename Format>
constexpr PanelKernels panel_kernels() {
  return {
      .stored = stored_type<typename Format::Element>(),
      .product = Format::kProduct,
      .group = Format::kGroup,
      .prepare_row = Format::prepare_row,
      .multiply = PanelMultiply<Format>::multiply,
      .unpack = Format::unpack,
  };
}

}  // namespace
}  // namespace anyslot::cpu
