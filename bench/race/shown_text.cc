#include "shown_text.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <cmath>

namespace anyslot::bench {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD
constexpr utf8proc_int32_t kFirstPicture = 0x2400;         // of the control characters, in order
constexpr utf8proc_int32_t kDeletePicture = 0x2421;

struct Range {
  utf8proc_int32_t first;
  utf8proc_int32_t last;
};

/// Controls past ASCII, marks of direction, what has no width, what is no character.
constexpr Range kUnseen[] = {{0x80, 0x9f},     {0xad, 0xad},     {0x61c, 0x61c},
                             {0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f},
                             {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xfffe, 0xffff}};

/// The first character of a text that is not empty, and its bytes; negative for no UTF-8.
struct Character {
  utf8proc_int32_t code = -1;
  size_t bytes = 1;
};

Character first_character(std::string_view text) {
  Character character;
  const utf8proc_ssize_t size =
      utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                       static_cast<utf8proc_ssize_t>(text.size()), &character.code);
  if (size > 0) character.bytes = static_cast<size_t>(size);
  return character;
}

std::string encoded(utf8proc_int32_t code) {
  utf8proc_uint8_t bytes[4];
  const utf8proc_ssize_t size = utf8proc_encode_char(code, bytes);
  return {reinterpret_cast<const char*>(bytes), static_cast<size_t>(size)};
}

size_t columns_of(const Character& character) {
  return character.code < 0 ? 1
                            : static_cast<size_t>(std::max(utf8proc_charwidth(character.code), 0));
}

/// The bytes of `text` that fit `width` columns, one character at least.
size_t fitting_bytes(std::string_view text, size_t width) {
  size_t bytes = 0;
  size_t columns = 0;
  while (bytes < text.size()) {
    const Character character = first_character(text.substr(bytes));
    columns += columns_of(character);
    if (columns > width && bytes > 0) break;
    bytes += character.bytes;
  }
  return bytes;
}

}  // namespace

std::string visible_line(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const Character character = first_character(text);
    const auto is_in = [&](const Range& range) {
      return character.code >= range.first && character.code <= range.last;
    };
    if (character.code < 0) {
      result += kReplacement;
    } else if (character.code < 0x20) {
      result += encoded(kFirstPicture + character.code);
    } else if (character.code == 0x7f) {
      result += encoded(kDeletePicture);
    } else if (std::ranges::any_of(kUnseen, is_in)) {
      result += fmt::format("[U+{:04X}]", character.code);
    } else {
      result += text.substr(0, character.bytes);
    }
    text.remove_prefix(character.bytes);
  }
  return result;
}

std::vector<TextRange> wrapped_lines(std::string_view text, size_t width) {
  std::vector<TextRange> lines;
  size_t begin = 0;
  do {
    const std::string_view rest = text.substr(begin);
    const size_t fits = fitting_bytes(rest, width);
    size_t end = fits;
    if (fits < rest.size() && rest[fits] != ' ') {
      const size_t space = rest.rfind(' ', fits);
      if (space != std::string_view::npos && space > 0) end = space;
    }
    lines.push_back({begin, begin + end});
    begin += end;
    while (begin < text.size() && text[begin] == ' ') ++begin;
  } while (begin < text.size());
  return lines;
}

std::string duration_text(double ms) {
  if (ms < 9.95) return fmt::format("{:.1f} ms", ms);
  if (ms < 999.5) return fmt::format("{:.0f} ms", ms);
  return ms < 9995 ? fmt::format("{:.2f} s", ms / 1000) : fmt::format("{:.1f} s", ms / 1000);
}

std::string times_text(double ratio) {
  return ratio < 9.95 ? fmt::format("{:.1f}", ratio) : count_text(std::llround(ratio));
}

}  // namespace anyslot::bench
