#include "base/random_normal.h"

#include <cmath>
#include <numbers>

namespace anyslot {

namespace {

/// The x that a normally distributed number exceeds with probability 1 - p, for p from 0.5 to 1.
/// There the distribution function is concave, so that Newton's steps from 0 never overshoot.
double upper_quantile(double p) {
  double x = 0;
  for (int step = 0; step < 60; ++step) {
    const double distribution = 0.5 * std::erfc(-x / std::numbers::sqrt2);
    const double density = std::exp(-0.5 * x * x) / std::sqrt(2 * std::numbers::pi);
    const double delta = (p - distribution) / density;
    x += delta;
    if (std::abs(delta) < 1e-12) break;
  }
  return x;
}

/// SplitMix64's output function.
uint64_t mixed(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

}  // namespace

RandomNormal::RandomNormal(double scale) {
  constexpr int kHalf = kNumQuantiles / 2;
  static const auto kUpperHalf = [] {
    std::array<double, kHalf> quantiles{};
    for (int i = 0; i < kHalf; ++i) quantiles[i] = upper_quantile(0.5 + (i + 0.5) / kNumQuantiles);
    return quantiles;
  }();
  for (int i = 0; i < kHalf; ++i) {
    const auto x = static_cast<float>(kUpperHalf[i] * scale);
    quantiles_[kHalf + i] = float_to_bf16(x);
    quantiles_[kHalf - 1 - i] = float_to_bf16(-x);
  }
}

void RandomNormal::fill(uint64_t seed, int64_t first, std::span<bf16_t> out) const {
  static_assert(kNumQuantiles == 1 << 12 && kGroup * 16 == 64);
  constexpr uint64_t kStep = 0x9e3779b97f4a7c15U;
  uint64_t counter = mixed(seed) + static_cast<uint64_t>(first / kGroup) * kStep;
  const auto next_bits = [&] { return mixed(counter += kStep); };
  const auto number = [&](uint64_t bits, int64_t i) {
    return quantiles_[(bits >> (16 * i)) & 0xfffU];
  };
  const size_t whole = out.size() / kGroup * kGroup;
  for (size_t begin = 0; begin < whole; begin += kGroup) {
    const uint64_t bits = next_bits();
    for (int64_t i = 0; i < kGroup; ++i) out[begin + i] = number(bits, i);
  }
  if (whole == out.size()) return;
  const uint64_t bits = next_bits();
  for (size_t i = whole; i < out.size(); ++i)
    out[i] = number(bits, static_cast<int64_t>(i - whole));
}

}  // namespace anyslot
