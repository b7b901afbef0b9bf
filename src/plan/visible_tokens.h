#pragma once

#include <algorithm>
#include <cstdint>

#include "plan/step_plan.h"

namespace anyslot {

/// Tokens [begin, end) of a placement. Empty when begin >= end.
struct VisibleTokens {
  int64_t begin = 0;
  int64_t end = 0;
};

/// Those that some row at a distance (position - start) within [min_distance, max_distance] can
/// see; begin is rounded down to a block. window: 0 for none.
inline VisibleTokens visible_tokens(const Placement& placement, int64_t min_distance,
                                    int64_t max_distance, int64_t window) {
  VisibleTokens tokens{placement.begin, std::min(placement.end, max_distance + 1)};
  if (window == 0) return tokens;
  const int64_t first = min_distance - window + 1;
  if (first >= tokens.end) return {};
  if (first > tokens.begin) tokens.begin = std::max(tokens.begin, first / kBlockSize * kBlockSize);
  return tokens;
}

}  // namespace anyslot
