#pragma once

#include <string>
#include <vector>

#include "race_result.h"

namespace anyslot::bench {

/// When the longest run of a race ends.
double race_end_ms(const Race& race);

/// Milliseconds on the screen for one that was measured, when the longest run took `ms`: 1 where
/// that can be watched, else a round number of times slower or faster.
double replay_scale(double ms);
/// "at real speed", "50 times slower than measured".
std::string scale_text(double scale);

/// What a run had shown `ms` after its begin.
struct RunState {
  double waited_ms = 0;    // for the first token
  double answered_ms = 0;  // since then
  bool begun = false;      // the first token has come
  bool ended = false;
  size_t pieces = 0;  // that have come
};

RunState state_at(const RaceRun& run, double ms);

/// Round places for marks on an axis from 0 to `ms`, about five of them.
std::vector<double> axis_ticks(double ms);

}  // namespace anyslot::bench
