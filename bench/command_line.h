#pragma once

#include <span>
#include <string>

namespace anyslot::bench {

/// This process's command as a shell takes it, for reports; "" where the system does not tell.
std::string command_line();

/// The arguments with quotes where a shell needs them.
std::string quoted_command(std::span<const std::string> arguments);

}  // namespace anyslot::bench
