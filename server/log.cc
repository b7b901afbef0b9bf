#include "log.h"

#include <spdlog/sinks/stdout_sinks.h>

namespace anyslot::server {

Expected<Logger> make_logger(const std::string& level) {
  const spdlog::level::level_enum parsed = spdlog::level::from_str(level);
  if (parsed == spdlog::level::off && level != "off") {
    return invalid_argument("unknown log level \"" + level +
                            "\"; use trace, debug, info, warning, error or off");
  }
  auto logger =
      std::make_shared<spdlog::logger>("server", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_level(parsed);
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %l %v");
  return logger;
}

std::string loggable(std::string text) {
  constexpr size_t kMaxBytes = 200;
  if (text.size() > kMaxBytes) text = text.substr(0, kMaxBytes) + "...";
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return text;
}

}  // namespace anyslot::server
