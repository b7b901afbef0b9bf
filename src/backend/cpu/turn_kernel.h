#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels.h"
#include "backend/cpu/pair_formats.h"

namespace anyslot::cpu {
namespace {  // NOLINT: each instruction set has its own copy, compiled with its own flags

/// Up to kLanes floats; the lanes beyond `count` are 0.
template <typename S>
typename S::Vec load_some(const float* p, int64_t count) {
  if (count >= S::kLanes) return S::load(p);
  alignas(64) float buffer[S::kLanes] = {};
  for (int64_t i = 0; i < count; ++i) buffer[i] = p[i];
  return S::load(buffer);
}

template <typename S>
void store_some(float* p, typename S::Vec x, int64_t count) {
  if (count >= S::kLanes) {
    S::store(p, x);
    return;
  }
  alignas(64) float buffer[S::kLanes];
  S::store(buffer, x);
  for (int64_t i = 0; i < count; ++i) p[i] = buffer[i];
}

template <typename S>
void store_some_bf16(bf16_t* p, typename S::Vec x, int64_t count) {
  if (count >= S::kLanes) {
    S::store_bf16(p, x);
    return;
  }
  bf16_t buffer[S::kLanes];
  S::store_bf16(buffer, x);
  for (int64_t i = 0; i < count; ++i) p[i] = buffer[i];
}

/// Where a turned head goes: all of a vector, or its first lanes.
template <typename S>
struct FloatSink {
  float* out;
  void store(int d, typename S::Vec x) const { S::store(out + d, x); }
  void store(int d, typename S::Vec x, int count) const { store_some<S>(out + d, x, count); }
};

/// A head of one token, turned: R(turn) x, and x * scale beyond the turned dimensions. Cosines and
/// sines may carry a scale of their own.
template <typename S, typename Sink>
void turn_head(const float* x, int head_dim, const Turn& turn, float scale, const Sink& sink) {
  using Vec = typename S::Vec;
  const int pairs = turn.num_pairs;
  int j = 0;
  for (; j + S::kLanes <= pairs; j += S::kLanes) {
    const Vec cosine = S::load(turn.cosine + j);
    const Vec sine = S::load(turn.sine + j);
    const Vec first = S::load(x + j);
    const Vec second = S::load(x + pairs + j);
    sink.store(j, S::fnma(second, sine, S::mul(first, cosine)));
    sink.store(pairs + j, S::fma(first, sine, S::mul(second, cosine)));
  }
  if (j < pairs) {
    const int count = pairs - j;
    const Vec cosine = load_some<S>(turn.cosine + j, count);
    const Vec sine = load_some<S>(turn.sine + j, count);
    const Vec first = load_some<S>(x + j, count);
    const Vec second = load_some<S>(x + pairs + j, count);
    sink.store(j, S::fnma(second, sine, S::mul(first, cosine)), count);
    sink.store(pairs + j, S::fma(first, sine, S::mul(second, cosine)), count);
  }
  int d = 2 * pairs;
  for (; d + S::kLanes <= head_dim; d += S::kLanes) {
    sink.store(d, S::mul(S::load(x + d), S::set(scale)));
  }
  if (d < head_dim) {
    const int count = head_dim - d;
    sink.store(d, S::mul(load_some<S>(x + d, count), S::set(scale)), count);
  }
}

/// Cosines and sines of `turn` and then `shift` (null: none), times scale.
template <typename S>
void compose_turns(const Turn& turn, const Turn* shift, float scale, float* cosine, float* sine) {
  using Vec = typename S::Vec;
  for (int j = 0; j < turn.num_pairs; j += S::kLanes) {
    const int count = turn.num_pairs - j;
    Vec c = S::mul(load_some<S>(turn.cosine + j, count), S::set(scale));
    Vec s = S::mul(load_some<S>(turn.sine + j, count), S::set(scale));
    if (shift != nullptr) {
      const Vec shift_cosine = load_some<S>(shift->cosine + j, count);
      const Vec shift_sine = load_some<S>(shift->sine + j, count);
      const Vec sum = S::fnma(s, shift_sine, S::mul(c, shift_cosine));
      s = S::fma(c, shift_sine, S::mul(s, shift_cosine));
      c = sum;
    }
    store_some<S>(cosine + j, c, count);
    store_some<S>(sine + j, s, count);
  }
}

/// Where the dimensions d and d + 1 of the tokens from t on stand in a packed block of keys; d is
/// even.
template <typename Element>
constexpr int64_t pair_offset(int d, int t) {
  return (int64_t{d} * kBlockTokens + 2 * t) * static_cast<int64_t>(sizeof(Element));
}

/// The keys of a block as float32, [head_dim, 16 tokens], to be multiplied by Pairs' unit.
template <typename S, typename Element>
void unpack_keys(const std::byte* block, int head_dim, float* keys) {
  for (int d = 0; d < head_dim; d += 2) {
    for (int t = 0; t < kBlockTokens; t += S::kLanes) {
      typename S::Vec first;
      typename S::Vec second;
      Pairs<S, Element>::load(block + pair_offset<Element>(d, t), first, second);
      S::store(keys + d * kBlockTokens + t, first);
      S::store(keys + (d + 1) * kBlockTokens + t, second);
    }
  }
}

template <typename S, typename Element>
void pack_keys(const float* keys, int head_dim, std::byte* block) {
  for (int d = 0; d < head_dim; d += 2) {
    for (int t = 0; t < kBlockTokens; t += S::kLanes) {
      Pairs<S, Element>::store(block + pair_offset<Element>(d, t),
                               S::load(keys + d * kBlockTokens + t),
                               S::load(keys + (d + 1) * kBlockTokens + t));
    }
  }
}

/// Cosine and sine of one pair, the same for all tokens.
template <typename S>
struct SameAngle {
  const Turn& turn;
  void operator()(int pair, int, typename S::Vec& cosine, typename S::Vec& sine) const {
    cosine = S::set(turn.cosine[pair]);
    sine = S::set(turn.sine[pair]);
  }
};

/// Cosine and sine of one pair for the tokens t.
template <typename S>
struct AngleOfToken {
  const float* cosines;  // [num_pairs, 16]
  const float* sines;
  void operator()(int pair, int token, typename S::Vec& cosine, typename S::Vec& sine) const {
    cosine = S::load(cosines + pair * kBlockTokens + token);
    sine = S::load(sines + pair * kBlockTokens + token);
  }
};

template <typename S>
void turn_pair(typename S::Vec cosine, typename S::Vec sine, typename S::Vec& first,
               typename S::Vec& second) {
  const typename S::Vec turned = S::fnma(second, sine, S::mul(first, cosine));
  second = S::fma(first, sine, S::mul(second, cosine));
  first = turned;
}

/// keys: float32 [head_dim, 16 tokens]; src may be dst.
template <typename S, typename Angle>
void turn_float_keys(const float* src, float* dst, int num_pairs, const Angle& angle) {
  using Vec = typename S::Vec;
  for (int j = 0; j < num_pairs; ++j) {
    for (int t = 0; t < kBlockTokens; t += S::kLanes) {
      Vec cosine;
      Vec sine;
      angle(j, t, cosine, sine);
      Vec first = S::load(src + j * kBlockTokens + t);
      Vec second = S::load(src + (j + num_pairs) * kBlockTokens + t);
      turn_pair<S>(cosine, sine, first, second);
      S::store(dst + j * kBlockTokens + t, first);
      S::store(dst + (j + num_pairs) * kBlockTokens + t, second);
    }
  }
}

/// Packed keys whose pairs stand in the same half of a lane: num_pairs is even.
template <typename S, typename Element, typename Angle>
void turn_paired_keys(const std::byte* src, std::byte* dst, int num_pairs, const Angle& angle) {
  using Vec = typename S::Vec;
  const int64_t partner = int64_t{num_pairs} * kBlockTokens * sizeof(Element);
  for (int j = 0; j < num_pairs; j += 2) {
    for (int t = 0; t < kBlockTokens; t += S::kLanes) {
      const int64_t at = pair_offset<Element>(j, t);
      Vec first[2];
      Vec second[2];
      Pairs<S, Element>::load(src + at, first[0], first[1]);
      Pairs<S, Element>::load(src + at + partner, second[0], second[1]);
      for (int i = 0; i < 2; ++i) {
        Vec cosine;
        Vec sine;
        angle(j + i, t, cosine, sine);
        turn_pair<S>(cosine, sine, first[i], second[i]);
      }
      Pairs<S, Element>::store(dst + at, first[0], first[1]);
      Pairs<S, Element>::store(dst + at + partner, second[0], second[1]);
    }
  }
}

template <typename S, typename Element, typename Angle>
void turn_packed_keys(const std::byte* src, std::byte* dst, int head_dim, int num_pairs,
                      const Angle& angle) {
  const int64_t turned_bytes = int64_t{2} * num_pairs * kBlockTokens * sizeof(Element);
  const int64_t all_bytes = int64_t{head_dim} * kBlockTokens * sizeof(Element);
  if constexpr (sizeof(Element) == sizeof(float)) {
    turn_float_keys<S>(reinterpret_cast<const float*>(src), reinterpret_cast<float*>(dst),
                       num_pairs, angle);
  } else if (num_pairs % 2 == 0) {
    turn_paired_keys<S, Element>(src, dst, num_pairs, angle);
  } else {
    alignas(64) float keys[kMaxHeadDim * kBlockTokens];
    unpack_keys<S, Element>(src, 2 * num_pairs, keys);
    turn_float_keys<S>(keys, keys, num_pairs, angle);
    pack_keys<S, Element>(keys, 2 * num_pairs, dst);
  }
  __builtin_memcpy(dst + turned_bytes, src + turned_bytes,
                   static_cast<size_t>(all_bytes - turned_bytes));
}

}  // namespace
}  // namespace anyslot::cpu
