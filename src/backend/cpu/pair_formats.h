#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"

namespace anyslot::cpu {
namespace {  // NOLINT: each instruction set has its own copy, compiled with its own flags

/// Pairs of elements, one in each of kLanes lanes, as two vectors of float32 and back. What load
/// gives is to be multiplied by kUnit, which whoever uses it can do later, and what store takes
/// too.
template <typename S, typename Element>
struct Pairs;

template <typename S>
struct Pairs<S, bf16_t> {
  using Vec = typename S::Vec;
  static constexpr float kUnit = 1;
  static void load(const std::byte* p, Vec& first, Vec& second) {
    S::load_bf16_pairs(p, first, second);
  }
  static void store(std::byte* p, Vec first, Vec second) { S::store_bf16_pairs(p, first, second); }
};

template <typename S>
struct Pairs<S, fp8_e4m3_t> {
  using Vec = typename S::Vec;
  static constexpr float kUnit = S::kFp8Unit;
  static void load(const std::byte* p, Vec& first, Vec& second) {
    S::load_fp8_pairs(p, first, second);
  }
  static void store(std::byte* p, Vec first, Vec second) {
    S::store_fp8_pairs(p, S::mul(first, S::set(kUnit)), S::mul(second, S::set(kUnit)));
  }
};

}  // namespace
}  // namespace anyslot::cpu
