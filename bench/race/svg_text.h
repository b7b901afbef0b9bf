#pragma once

#include <string>
#include <string_view>

namespace anyslot::bench {

/// A text as it stands in an element of XML or in a quoted attribute: by visible_line(), so that it
/// has no character that XML forbids, and with signs of XML escaped.
std::string svg_text(std::string_view text);

/// A number of a picture, with two decimals at most.
std::string svg_number(double value);

}  // namespace anyslot::bench
