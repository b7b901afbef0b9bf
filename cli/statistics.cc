#include "statistics.h"

#include <algorithm>
#include <vector>

namespace anyslot::cli {

double percentile(std::span<const double> values, double percent) {
  if (values.empty()) return 0;
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const double place =
      static_cast<double>(sorted.size() - 1) * std::clamp(percent, 0.0, 100.0) / 100;
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (place - static_cast<double>(below));
}

}  // namespace anyslot::cli
