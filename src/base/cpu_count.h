#pragma once

#include <optional>
#include <string>

namespace anyslot {

/// Physical cores that this process may run on.
int num_physical_cores();

/// CPUs' worth of time that the control groups of this process leave it, the tightest of them
/// (versions 1 and 2); none without a limit. `root` is "/", or a folder that stands for it.
std::optional<double> cpu_quota(const std::string& root);

/// Threads that suit the machine: one per physical core, no more than the quota rounded up, since
/// threads beyond it are stopped together when the time is used up.
int default_num_threads();

}  // namespace anyslot
