#pragma once

#include <string>
#include <vector>

#include "race_result.h"

namespace anyslot::bench {

/// What a race showed, in sentences: read off the measured times, the told usage and the answers,
/// nothing else. Of two runs.
std::vector<std::string> verdict_of(const Race& race);

/// What was cached of a run's documents, or of its prompt where that is all that is told: "820 of
/// 856 document tokens cached".
std::string reuse_text(const RaceRun& run);

/// What was read before the measured runs.
std::string start_text(const RacePlan& plan);

}  // namespace anyslot::bench
