#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

namespace anyslot {

/// Rounds one output channel of a weight to whole numbers in [-127, 127] and returns the scale:
/// weight = scale * number, within scale / 2. A channel that is not finite gets the scale NaN.
inline float quantize_row(std::span<const float> row, std::span<int8_t> out) {
  constexpr float kLargest = 127.0F;
  float maximum = 0;
  for (const float x : row) {
    if (!std::isfinite(x)) {
      std::ranges::fill(out, int8_t{0});
      return std::numeric_limits<float>::quiet_NaN();
    }
    maximum = std::max(maximum, std::abs(x));
  }
  const float scale = maximum / kLargest;
  if (scale < std::numeric_limits<float>::min()) {
    std::ranges::fill(out, int8_t{0});
    return 0;
  }
  for (size_t i = 0; i < row.size(); ++i) {
    out[i] = static_cast<int8_t>(std::nearbyint(row[i] / scale));
  }
  return scale;
}

}  // namespace anyslot
