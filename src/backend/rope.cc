#include "backend/rope.h"

#include <cmath>
#include <cstddef>
#include <utility>

namespace anyslot {

namespace {

struct CosSin {
  double cosine;
  double sine;
};

/// The product is formed with its rounding error, so that R(a) R(b) = R(a + b) holds to float64
/// precision for every position, and not only for small ones.
CosSin exact_cos_sin(int64_t position, double inv_freq) {
  const double factor = static_cast<double>(position);
  const double angle = factor * inv_freq;
  const double error = std::fma(factor, inv_freq, -angle);
  const double cosine = std::cos(angle);
  const double sine = std::sin(angle);
  return {cosine - error * sine, sine + error * cosine};
}

std::vector<double> make_table(const std::vector<double>& inv_freq, int64_t num_positions,
                               int64_t stride) {
  const size_t pairs = inv_freq.size();
  std::vector<double> table(static_cast<size_t>(num_positions) * 2 * pairs);
  for (int64_t i = 0; i < num_positions; ++i) {
    double* row = table.data() + static_cast<size_t>(i) * 2 * pairs;
    for (size_t j = 0; j < pairs; ++j) {
      const CosSin value = exact_cos_sin(i * stride, inv_freq[j]);
      row[j] = value.cosine;
      row[pairs + j] = value.sine;
    }
  }
  return table;
}

}  // namespace

RopeTable::RopeTable(RopeParameters parameters)
    : parameters_(std::move(parameters)),
      low_(make_table(parameters_.inv_freq, kStride, 1)),
      high_(make_table(parameters_.inv_freq, kNumMultiples, kStride)) {}

void RopeTable::cos_sin(int64_t position, float* cosine, float* sine) const {
  const size_t pairs = parameters_.inv_freq.size();
  const int64_t magnitude = position < 0 ? -position : position;
  const double sign = position < 0 ? -1.0 : 1.0;
  const int64_t multiple = magnitude / kStride;
  const double* low = low_.data() + static_cast<size_t>(magnitude % kStride) * 2 * pairs;
  if (multiple < kNumMultiples) {
    const double* high = high_.data() + static_cast<size_t>(multiple) * 2 * pairs;
    for (size_t j = 0; j < pairs; ++j) {
      cosine[j] = static_cast<float>(high[j] * low[j] - high[pairs + j] * low[pairs + j]);
      sine[j] = static_cast<float>(sign * (high[pairs + j] * low[j] + high[j] * low[pairs + j]));
    }
    return;
  }
  for (size_t j = 0; j < pairs; ++j) {
    const CosSin high = exact_cos_sin(multiple * kStride, parameters_.inv_freq[j]);
    cosine[j] = static_cast<float>(high.cosine * low[j] - high.sine * low[pairs + j]);
    sine[j] = static_cast<float>(sign * (high.sine * low[j] + high.cosine * low[pairs + j]));
  }
}

}  // namespace anyslot
