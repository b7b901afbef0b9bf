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

/// tanh(x) within 3e-7 of its size; NaN stays.
template <typename S>
typename S::Vec tanh_of(typename S::Vec x) {
  using Vec = typename S::Vec;
  constexpr float kSmall = 0.5625F;
  // tanh(x) = x + x z q(z) with z = x^2, for small ones; q interpolated at Chebyshev nodes.
  const Vec z = S::mul(x, x);
  Vec q = S::set(-0.00652557239F);
  q = S::fma(q, z, S::set(0.0212633535F));
  q = S::fma(q, z, S::set(-0.0539017543F));
  q = S::fma(q, z, S::set(0.133330733F));
  q = S::fma(q, z, S::set(-0.333333313F));
  const Vec small = S::fma(S::mul(x, z), q, x);
  // Elsewhere 1 - 2 / (1 + e^2x) loses no digits.
  const Vec one = S::set(1.0F);
  const Vec large = S::sub(one, S::div(S::set(2.0F), S::add(one, exp_of<S>(S::add(x, x)))));
  return S::select(S::below(z, S::set(kSmall * kSmall)), small, large);
}

/// Of 2^r - 1 on |r| <= 1/2: the coefficients of r, r^2, ... of the polynomial whose largest error,
/// relative to 2^r, is least.
template <int kDegree>
inline constexpr float kExp2Terms[kDegree] = {};
template <>
inline constexpr float kExp2Terms<3>[] = {0.693282962F, 0.242211044F, 0.0550089441F};
template <>
inline constexpr float kExp2Terms<4>[] = {0.693124175F, 0.240240991F, 0.0559064373F,
                                          0.00958285574F};
template <>
inline constexpr float kExp2Terms<6>[] = {0.693147182F,   0.240226477F,   0.0555033237F,
                                          0.00961843692F, 0.00133988762F, 0.000153533649F};

/// 2^x for x below 127, within 1.1e-4 of its size with 3 terms, 3e-6 with 4 and 2e-7 with 6. Below
/// S::kExp2Lowest it is 0; NaN stays, and infinities become NaN.
template <typename S, int kDegree>
[[gnu::always_inline]] inline typename S::Vec exp2_of(typename S::Vec x) {
  using Vec = typename S::Vec;
  const Vec clamped = S::at_least(x, S::kExp2Lowest);
  const Vec n = S::round(clamped);
  const Vec r = S::sub(clamped, n);
  Vec p = S::set(kExp2Terms<kDegree>[kDegree - 1]);
  for (int i = kDegree - 2; i >= 0; --i) p = S::fma(p, r, S::set(kExp2Terms<kDegree>[i]));
  p = S::fma(p, r, S::set(1.0F));
  return S::zero_below(S::scale_by_power(p, n), x, S::kExp2Lowest);
}

}  // namespace
}  // namespace anyslot::cpu
