#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels.h"
#include "backend/cpu/turn_kernel.h"

namespace anyslot::cpu {
namespace {  // NOLINT: each instruction set has its own copy, compiled with its own flags

// How a few rows meet the columns of a weight panel. A format names the types of the weights and
// of the rows' operands, how many in_features one step consumes (kGroup), what it sums in, and how
// many rows of sums, each of a panel's columns, fit in the registers.

/// Lanes i to i + kLanes of a row of float32 or bfloat16, zeros behind its end.
template <typename S>
typename S::Vec load_of_row(const void* x, DType type, int64_t i, int64_t in) {
  if (type == DType::kFloat32) return load_some<S>(static_cast<const float*>(x) + i, in - i);
  const auto* row = static_cast<const bf16_t*>(x);
  if (i + S::kLanes <= in) return S::load_bf16(row + i);
  alignas(64) bf16_t last[S::kLanes] = {};
  if (i < in) __builtin_memcpy(last, row + i, static_cast<size_t>(in - i) * sizeof(bf16_t));
  return S::load_bf16(last);
}

template <typename S>
typename S::Vec load_widened(const float* p) {
  return S::load(p);
}
template <typename S>
typename S::Vec load_widened(const bf16_t* p) {
  return S::load_bf16(p);
}
template <typename S>
typename S::Vec load_widened(const int8_t* p) {
  return S::load_int8(p);
}

template <typename T>
constexpr StoredType stored_type() {
  if constexpr (sizeof(T) == sizeof(float)) {
    return StoredType::kFloat32;
  } else {
    return sizeof(T) == sizeof(bf16_t) ? StoredType::kBFloat16 : StoredType::kInt8;
  }
}

/// Products in float32 with weights of any stored type.
template <typename S, typename T>
struct WidenedPanel {
  using Simd = S;
  using Element = T;
  using Operand = float;
  using Sum = typename S::Vec;
  struct Packed {
    typename S::Vec x;
  };
  static constexpr DType kProduct = DType::kFloat32;
  static constexpr int kGroup = 1;
  static constexpr int kRows = S::kLanes == 16 ? 4 : 1;

  static void prepare_row(const void* x, DType type, int64_t in, int64_t padded_in,
                          std::byte* operand) {
    for (int64_t i = 0; i < padded_in; i += S::kLanes) {
      S::store(reinterpret_cast<float*>(operand) + i, load_of_row<S>(x, type, i, in));
    }
  }
  static Sum zero() { return S::zero(); }
  static Packed load(const T* p) { return {load_widened<S>(p)}; }
  static void add_product(Sum& sum, const Packed& b, const float* a, int64_t) {
    sum = S::fma(S::set(*a), b.x, sum);
  }
  static typename S::Vec finish(const Sum& sum, const PanelProduct& product, const float*,
                                int column) {
    return product.scales == nullptr ? sum : S::mul(sum, S::load(product.scales + column));
  }
  static void unpack(const std::byte* panel, int64_t padded_in, std::byte* out, int64_t stride) {
    const T* from = reinterpret_cast<const T*>(panel);
    auto* to = reinterpret_cast<float*>(out);
    for (int64_t i = 0; i < padded_in; ++i, from += kPanelColumns, to += stride) {
      for (int c = 0; c < kPanelColumns; c += S::kLanes) {
        S::store(to + c, load_widened<S>(from + c));
      }
    }
  }
};

}  // namespace
}  // namespace anyslot::cpu
