#pragma once

#include <spdlog/logger.h>

#include <cstddef>
#include <memory>
#include <string>

#include "anyslot/status.h"

namespace anyslot::server {

using Logger = std::shared_ptr<spdlog::logger>;

/// Writes to standard error. `level`: trace, debug, info, warning, error or off.
Expected<Logger> make_logger(const std::string& level);

/// Whether a text of UTF-8 has control characters, line ends among them.
bool has_control_characters(const std::string& text);

/// A text of a client in one line of a log: at most `max_bytes`, control characters as '?'.
std::string loggable(std::string text, size_t max_bytes = 200);

}  // namespace anyslot::server
