#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/pair_formats.h"
#include "base/dtype.h"

namespace anyslot::cpu {
namespace {  // NOLINT: each instruction set has its own copy, compiled with its own flags

// How rows of operands meet packed K or V. A format names the type of its operands, how many of
// them one step consumes (kPack), and the tile of sums that fits in the registers: kRows rows of
// operands by kCols vectors. K and V as they are loaded are to be multiplied by kUnit.

/// float32 K and V.
template <typename S>
struct Float32Dot {
  using Simd = S;
  using Operand = float;
  using Element = float;  // of K and V
  static constexpr int kPack = 1;
  // 16 or 32 registers: the sums, the vectors of one step, and one broadcast operand.
  static constexpr int kRows = 6;
  static constexpr int kCols = S::kLanes == 16 ? 4 : 2;
  static constexpr int kExpDegree = 6;
  static constexpr float kUnit = 1;

  struct Packed {
    typename S::Vec x;
  };
  static Packed load(const std::byte* p) { return {S::load(reinterpret_cast<const float*>(p))}; }
  static void add_product(typename S::Vec& sum, Packed b, const Operand* a) {
    sum = S::fma(S::set(*a), b.x, sum);
  }
  static void store_operands(Operand* p, typename S::Vec x) { S::store(p, x); }
  static void store_operands(Operand* p, typename S::Vec x, typename S::Vec y) {
    S::store(p, x);
    S::store(p + S::kLanes, y);
  }
};

/// K and V of a narrower type, widened to float32 on the way.
template <typename S, typename NarrowElement>
struct WidenedDot {
  using Simd = S;
  using Operand = float;
  using Element = NarrowElement;
  static constexpr int kPack = 2;
  // A step's vectors take two registers each.
  static constexpr int kRows = S::kLanes == 16 ? 5 : 4;
  static constexpr int kCols = S::kLanes == 16 ? 4 : 2;
  static constexpr int kExpDegree = 4;
  static constexpr float kUnit = Pairs<S, Element>::kUnit;

  struct Packed {
    typename S::Vec first;
    typename S::Vec second;
  };
  static Packed load(const std::byte* p) {
    Packed b;
    Pairs<S, Element>::load(p, b.first, b.second);
    return b;
  }
  static void add_product(typename S::Vec& sum, const Packed& b, const Operand* a) {
    sum = S::fma(S::set(a[0]), b.first, sum);
    sum = S::fma(S::set(a[1]), b.second, sum);
  }
  static void store_operands(Operand* p, typename S::Vec x) { S::store(p, x); }
  static void store_operands(Operand* p, typename S::Vec x, typename S::Vec y) {
    S::store(p, x);
    S::store(p + S::kLanes, y);
  }
};

}  // namespace
}  // namespace anyslot::cpu
