#pragma once

#include <cstdint>
#include <vector>

namespace anyslot {

/// The rotation of one kind of layer. Angle of pair j at position p: p * inv_freq[j], in float64.
struct RopeParameters {
  std::vector<double> inv_freq;  // [rotary_dim / 2]; dimension j pairs with j + rotary_dim / 2
  /// YaRN's; multiplies the turned dimensions of Q, once. A model whose checkpoint scales the
  /// turned Q and the turned K by f gives f * f here.
  double attention_factor = 1.0;
};

/// Cosines and sines of any position, composed in float64 from two tables: of the positions below
/// kStride, and of its multiples. Immutable, so threads may share it.
class RopeTable {
 public:
  explicit RopeTable(RopeParameters parameters);

  const RopeParameters& parameters() const { return parameters_; }
  int num_pairs() const { return static_cast<int>(parameters_.inv_freq.size()); }

  /// Writes num_pairs() cosines and sines of `position` (any sign, magnitude below 2^31). Below
  /// 2^20 it costs one complex product per pair; beyond that the multiple of kStride is computed as
  /// well.
  void cos_sin(int64_t position, float* cosine, float* sine) const;

 private:
  static constexpr int64_t kStride = 1024;
  static constexpr int64_t kNumMultiples = 1024;

  RopeParameters parameters_;
  std::vector<double> low_;   // [kStride, (cos, sin), num_pairs]: of position i
  std::vector<double> high_;  // [kNumMultiples, (cos, sin), num_pairs]: of position i * kStride
};

}  // namespace anyslot
