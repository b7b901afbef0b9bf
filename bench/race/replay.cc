#include "replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace anyslot::bench {

double race_end_ms(const Race& race) {
  double end = 0;
  for (const RaceRun& run : race.runs) end = std::max(end, run.total_ms);
  return end;
}

double replay_scale(double ms) {
  constexpr double kShortest = 2500;  // ms on the screen: less cannot be watched
  constexpr double kLongest = 12000;
  constexpr double kFactors[] = {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000};
  const bool faster = ms > kLongest;
  for (const double factor : kFactors) {
    if (faster && ms / factor <= kLongest) return 1 / factor;
    if (!faster && ms * factor >= kShortest) return factor;
  }
  return faster ? 1e-3 : 1e3;
}

std::string scale_text(double scale) {
  if (scale == 1) return "at real speed";
  return scale > 1 ? fmt::format("{:.0f} times slower than measured", scale)
                   : fmt::format("{:.0f} times faster than measured", 1 / scale);
}

RunState state_at(const RaceRun& run, double ms) {
  const double first = run.first_token_ms.value_or(run.total_ms);
  RunState state;
  state.waited_ms = std::min(ms, first);
  state.answered_ms = std::max(0.0, std::min(ms, run.total_ms) - first);
  state.begun = run.first_token_ms && ms >= first;
  state.ended = ms >= run.total_ms;
  state.pieces = static_cast<size_t>(
      std::ranges::count_if(run.pieces, [ms](const RacePiece& p) { return p.at_ms <= ms; }));
  return state;
}

std::vector<double> axis_ticks(double ms) {
  if (!(ms > 0)) return {0};
  const double rough = ms / 4;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double digit : {5, 2, 1}) {
    if (digit * power >= rough) step = digit * power;
  }
  std::vector<double> ticks;
  for (int i = 0; i * step <= ms * (1 + 1e-9); ++i) ticks.push_back(i * step);
  return ticks;
}

}  // namespace anyslot::bench
