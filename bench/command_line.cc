#include "command_line.h"

#include <algorithm>

#include "cli/text_file.h"

namespace anyslot::bench {

namespace {

constexpr std::string_view kSecret = "--api-key";

std::string quoted(std::string_view word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./,:=+@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos) {
    return std::string(word);
  }
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

}  // namespace

std::string quoted_command(std::string_view words) {
  std::string text;
  bool hide = false;
  while (!words.empty()) {
    const size_t end = std::min(words.find('\0'), words.size());
    std::string word(words.substr(0, end));
    words.remove_prefix(std::min(end + 1, words.size()));
    if (hide) word = "HIDDEN";
    hide = word == kSecret;
    if (word.starts_with(std::string(kSecret) + "=")) word = std::string(kSecret) + "=HIDDEN";
    text += (text.empty() ? "" : " ") + quoted(word);
  }
  return text;
}

std::string command_line() {
  const Expected<std::string> words = cli::read_file("/proc/self/cmdline");
  return words ? quoted_command(*words) : "unknown";
}

}  // namespace anyslot::bench
