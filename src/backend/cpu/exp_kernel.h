#pragma once

namespace anyslot::cpu {
namespace {  // NOLINT: each instruction set has its own copy, compiled with its own flags

/// exp(x) within 2e-7 of its size. Above 88.3 it is as at 88.3; below S::kExpLowest it is 0; NaN
/// stays.
template <typename S>
typename S::Vec exp_of(typename S::Vec x) {
  using Vec = typename S::Vec;
  constexpr float kHighest = 88.3F;
  // ln 2 as a float32 and the rest.
  constexpr float kLn2 = 0.693147182464599609375F;
  constexpr float kLn2Rest = -1.904654323e-09F;
  const Vec clamped = S::min(S::set(kHighest), S::max(S::set(S::kExpLowest), x));
  const Vec n = S::round(S::mul(clamped, S::set(1.44269504088896340736F)));
  const Vec r = S::fnma(n, S::set(kLn2Rest), S::fnma(n, S::set(kLn2), clamped));
  // exp(r) = 1 + r + r^2 q(r) on |r| <= ln(2) / 2; q interpolated at Chebyshev nodes.
  Vec q = S::set(0.00139261836F);
  q = S::fma(q, r, S::set(0.00836317905F));
  q = S::fma(q, r, S::set(0.0416665546F));
  q = S::fma(q, r, S::set(0.16666577F));
  q = S::fma(q, r, S::set(0.5F));
  const Vec p = S::add(S::set(1.0F), S::fma(S::mul(q, r), r, r));
  return S::zero_below(S::scale_by_power(p, n), x, S::kExpLowest);
}

}  // namespace
}  // namespace anyslot::cpu
