#include "backend/reference/elements.h"

#include <cmath>

namespace anyslot::reference {

std::vector<double> load_row(const TensorView& x, int64_t row, int64_t begin, int64_t count) {
  std::vector<double> values(count);
  for (int64_t i = 0; i < count; ++i) values[i] = load_element(x.row(row), x.dtype, begin + i);
  return values;
}

std::vector<double> load_row(const TensorView& x, int64_t row) {
  return load_row(x, row, 0, x.cols);
}

void store_row(const TensorView& x, int64_t row, int64_t begin, std::span<const double> values) {
  for (size_t i = 0; i < values.size(); ++i) {
    store_element(x.row(row), x.dtype, begin + i, static_cast<float>(values[i]));
  }
}

void turn(std::span<double> head, const RopeParameters& rope, int64_t position) {
  const size_t pairs = rope.inv_freq.size();
  for (size_t j = 0; j < pairs; ++j) {
    const double angle = static_cast<double>(position) * rope.inv_freq[j];
    const double cosine = std::cos(angle);
    const double sine = std::sin(angle);
    const double first = head[j];
    const double second = head[j + pairs];
    head[j] = first * cosine - second * sine;
    head[j + pairs] = second * cosine + first * sine;
  }
}

}  // namespace anyslot::reference
