#pragma once

#include <spdlog/logger.h>

#include <memory>
#include <string>

#include "anyslot/status.h"

namespace anyslot::server {

using Logger = std::shared_ptr<spdlog::logger>;

/// Writes to standard error. `level`: trace, debug, info, warning, error or off.
Expected<Logger> make_logger(const std::string& level);

/// A text of a client in one line of a log: at most 200 bytes, control characters as '?'.
std::string loggable(std::string text);

}  // namespace anyslot::server
