#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "kv/kv_cache.h"
#include "plan/step_plan.h"

namespace anyslot {

/// A document that is being encoded alone, for whoever waits for its entry.
struct EncodeJob {
  std::vector<int32_t> tokens;
  KeyForm key_form = KeyForm::kTurned;
  int64_t num_computed = 0;
  int64_t num_scheduled = 0;  // by the step in flight

  int64_t num_known() const { return num_computed + num_scheduled; }
  bool finishes_in_step() const { return num_known() == static_cast<int64_t>(tokens.size()); }
};

/// One job per entry in state kEncoding.
using EncodeJobs = std::unordered_map<CacheEntry*, EncodeJob>;

}  // namespace anyslot
