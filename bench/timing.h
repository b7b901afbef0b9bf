#pragma once

#include <chrono>
#include <vector>

#include "anyslot/status.h"

namespace anyslot::bench {

inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// How often something is measured: at least so many times, and until so much time was measured.
struct RunLimits {
  int runs = 10;
  double seconds = 0.3;
};

/// Calls run(i), which returns the seconds that it measured, for i = 0 (for warmth) and then as
/// often as the limits ask. Returns the measurements without the first, or the first failure.
template <typename Run>
Expected<std::vector<double>> time_runs(const RunLimits& limits, const Run& run) {
  std::vector<double> times;
  double total = 0;
  for (int i = 0; i <= limits.runs || total < limits.seconds; ++i) {
    const Expected<double> seconds = run(i);
    if (!seconds) return seconds.status();
    if (i == 0) continue;
    times.push_back(*seconds);
    total += *seconds;
  }
  return times;
}

}  // namespace anyslot::bench
