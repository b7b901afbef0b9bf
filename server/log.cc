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

bool has_control_characters(const std::string& text) { return loggable(text, text.size()) != text; }

std::string loggable(std::string text, size_t max_bytes) {
  if (text.size() > max_bytes) text = text.substr(0, max_bytes) + "...";
  unsigned char before = 0;
  for (char& c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool second_of_c1 = before == 0xc2 && byte >= 0x80 && byte < 0xa0;  // U+0080 to U+009F
    if (byte < 0x20 || byte == 0x7f || second_of_c1) c = '?';
    before = byte;
  }
  return text;
}

}  // namespace anyslot::server
