#pragma once

#include <string_view>

namespace anyslot {

/// Levels of brackets that a JSON file may nest. JSON libraries recurse when they copy or print a
/// value, so deeper ones could exhaust the stack.
inline constexpr int kMaxJsonDepth = 64;

/// Whether `json`, valid or not, nests deeper than kMaxJsonDepth.
bool nests_too_deep(std::string_view json);

}  // namespace anyslot
