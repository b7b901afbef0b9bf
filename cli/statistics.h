#pragma once

#include <span>

namespace anyslot::cli {

/// The value below which `percent` of the values lie, interpolated between neighbours (as NumPy's
/// default). 0 for no values.
double percentile(std::span<const double> values, double percent);

double mean(std::span<const double> values);  // 0 for no values
/// Of a sample (n - 1); 0 for fewer than two values.
double standard_deviation(std::span<const double> values);

inline double median(std::span<const double> values) { return percentile(values, 50); }

}  // namespace anyslot::cli
