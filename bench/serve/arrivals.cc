#include <algorithm>
#include <cmath>

#include "random.h"
#include "workload.h"

namespace anyslot::bench {

namespace {

constexpr uint64_t kArrivalStream = 1;

double rate_at(const ArrivalOptions& options, size_t index, size_t count) {
  if (options.ramp == ArrivalOptions::Ramp::kNone) return options.request_rate;
  const double progress =
      static_cast<double>(index) / static_cast<double>(std::max<size_t>(count, 2) - 1);
  if (options.ramp == ArrivalOptions::Ramp::kLinear) {
    return options.ramp_start_rps + (options.ramp_end_rps - options.ramp_start_rps) * progress;
  }
  return options.ramp_start_rps * std::pow(options.ramp_end_rps / options.ramp_start_rps, progress);
}

}  // namespace

std::vector<double> arrival_times(const ArrivalOptions& options, size_t count, uint64_t seed) {
  RandomStream random(seed, kArrivalStream);
  std::vector<double> times;
  double now = 0;
  for (size_t i = 0; i < count; ++i) {
    times.push_back(now);
    const double rate = rate_at(options, i, count);
    if (std::isinf(rate)) continue;
    now += (std::isinf(options.burstiness) ? 1 : random.gamma(options.burstiness)) / rate;
  }
  return times;
}

}  // namespace anyslot::bench
