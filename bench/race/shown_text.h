#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/sizes.h"

namespace anyslot::bench {

/// A text of a document, an answer or a server as it may be shown in one line: characters that
/// would be unseen, that would move a terminal's cursor or that change how others are read become
/// visible signs, bytes that are no UTF-8 become U+FFFD. Of the texts a and b, the signs of a + b
/// are those of a and those of b.
std::string visible_line(std::string_view text);

/// Bytes [begin, end) of a text.
struct TextRange {
  size_t begin = 0;
  size_t end = 0;
};

/// The lines of a text that is shown `width` columns wide, broken at spaces where there are any.
/// `text` must be UTF-8, as visible_line() gives it. At least one line, perhaps an empty one.
std::vector<TextRange> wrapped_lines(std::string_view text, size_t width);

/// ms with three digits or so: "4.2 ms", "151 ms", "2.31 s".
std::string duration_text(double ms);
/// How many times: "6.3", "17".
std::string times_text(double ratio);
using cli::count_text;
using cli::plural_text;

}  // namespace anyslot::bench
