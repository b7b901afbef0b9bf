#pragma once

#include <cstdint>
#include <vector>

namespace anyslot {

/// The rotation of one kind of layer. Angle of pair j at position p: p * inv_freq[j], in float64.
struct RopeParameters {
  std::vector<double> inv_freq;    // [rotary_dim / 2]; dimension j pairs with j + rotary_dim / 2
  double attention_factor = 1.0;   // YaRN's; applied once, to Q
};

/// Cosines and sines of any position, composed in float64 from two small tables.
class RopeTable {
 public:
  explicit RopeTable(RopeParameters parameters);

  const RopeParameters& parameters() const { return parameters_; }
  int num_pairs() const { return static_cast<int>(parameters_.inv_freq.size()); }

  /// Writes num_pairs() cosines and sines of `position` (any sign, magnitude below 2^31).
  void cos_sin(int64_t position, float* cosine, float* sine) const;

 private:
  RopeParameters parameters_;
  std::vector<double> low_;   // [kLow, num_pairs, (cos, sin)]
  std::vector<double> high_;  // grows never: [kHigh, num_pairs, (cos, sin)]
};

}  // namespace anyslot
