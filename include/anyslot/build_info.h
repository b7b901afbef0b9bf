#pragma once

#include <string>
#include <utility>
#include <vector>

namespace anyslot {

/// What this build and this machine have, as (name, value) pairs: version, instruction sets found
/// and used, libraries with their versions, threads chosen by default, memory.
std::vector<std::pair<std::string, std::string>> build_info();

}  // namespace anyslot
