#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/serve/target.h"
#include "cli/input_rows.h"
#include "race_result.h"

namespace anyslot::bench {

/// Which question of the rows is raced.
struct RaceChoice {
  int index = 1;          // of the row, from 1
  int num_documents = 0;  // the first so many of its documents; 0: all
  int max_tokens = 0;     // 0: as the row says, else 64
  uint64_t seed = 0;      // of the new order
  bool cold = false;
};

/// `name`: of the file, for messages. Fails with kInvalidArgument for a row or documents that are
/// not there, and for a row of segments.
Expected<RacePlan> plan_race(const std::vector<cli::InputRow>& rows, const std::string& name,
                             const RaceChoice& choice);

/// One who takes part.
struct Lane {
  std::string name;  // in what is shown
  std::string note;  // what it does with documents
  LaneReuse reuse = LaneReuse::kUnknown;
  std::unique_ptr<Target> target;
};

enum class RaceStage : uint8_t { kReadingBefore, kRunning };

/// Runs the lanes one after the other, so that none slows another; in a warm race each first reads
/// the documents in their old order. `on_stage` hears what begins. Fails with kUnavailable, naming
/// the lane, when a request fails or nothing comes for `timeout_seconds`.
Expected<std::vector<RaceRun>> run_race(
    const RacePlan& plan, const std::vector<Lane>& lanes, double timeout_seconds,
    const std::function<void(RaceStage, const Lane&)>& on_stage);

}  // namespace anyslot::bench
