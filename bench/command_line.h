#pragma once

#include <string>
#include <string_view>

namespace anyslot::bench {

/// The command that started this program, quoted for a shell, for reports. The value of --api-key
/// is hidden.
std::string command_line();

/// The same of words that each end in a zero byte, as /proc/self/cmdline has them.
std::string quoted_command(std::string_view words);

}  // namespace anyslot::bench
