#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/dtype.h"

namespace anyslot {

/// Normally distributed bfloat16 numbers, made fast for filling gigabytes: a counter-based
/// generator picks among kNumQuantiles equally likely quantiles (none lies beyond 3.7 standard
/// deviations), so any part of a sequence can be made alone. The same on every machine.
class RandomNormal {
 public:
  /// Mean 0, standard deviation `scale`.
  explicit RandomNormal(double scale);

  /// out[i] = number first + i of the seed's sequence. `first`: a multiple of kGroup.
  void fill(uint64_t seed, int64_t first, std::span<bf16_t> out) const;

  /// Numbers that one step of the generator gives.
  static constexpr int64_t kGroup = 4;

 private:
  static constexpr int kNumQuantiles = 4096;

  std::array<bf16_t, kNumQuantiles> quantiles_;
};

}  // namespace anyslot
