#include "command_line.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string_view>
#include <vector>

namespace anyslot::bench {

namespace {

bool is_plain(char c) {
  constexpr std::string_view kPlain = "_-+=:,./@%";
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         kPlain.find(c) != std::string_view::npos;
}

std::string quoted(const std::string& argument) {
  if (!argument.empty() && std::ranges::all_of(argument, is_plain)) return argument;
  std::string text = "'";
  for (const char c : argument) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

}  // namespace

std::string quoted_command(std::span<const std::string> arguments) {
  std::string text;
  for (const std::string& argument : arguments) {
    if (!text.empty()) text += ' ';
    text += quoted(argument);
  }
  return text;
}

std::string command_line() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  std::vector<std::string> arguments;
  for (size_t begin = 0; begin < bytes.size();) {
    const size_t end = std::min(bytes.find('\0', begin), bytes.size());
    arguments.push_back(bytes.substr(begin, end - begin));
    begin = end + 1;
  }
  return quoted_command(arguments);
}

}  // namespace anyslot::bench
