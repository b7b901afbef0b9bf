#include "table.h"

#include <utf8proc.h>

#include <algorithm>

namespace anyslot::cli {
namespace {

struct Glyph {
  size_t bytes;
  size_t columns;
};

Glyph first_glyph(std::string_view text) {
  utf8proc_int32_t c = -1;
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  const utf8proc_ssize_t size =
      utf8proc_iterate(bytes, static_cast<utf8proc_ssize_t>(text.size()), &c);
  if (size <= 0) return {1, 1};
  return {static_cast<size_t>(size), static_cast<size_t>(std::max(utf8proc_charwidth(c), 0))};
}

}  // namespace

size_t display_width(std::string_view text) {
  size_t width = 0;
  while (!text.empty()) {
    const Glyph glyph = first_glyph(text);
    width += glyph.columns;
    text.remove_prefix(glyph.bytes);
  }
  return width;
}

std::string shortened(std::string_view text, size_t width) {
  constexpr std::string_view kEllipsis = "...";
  if (display_width(text) <= width) return std::string(text);
  std::string result;
  size_t used = kEllipsis.size();
  while (!text.empty()) {
    const Glyph glyph = first_glyph(text);
    if (used + glyph.columns > width) break;
    used += glyph.columns;
    result += text.substr(0, glyph.bytes);
    text.remove_prefix(glyph.bytes);
  }
  result += kEllipsis;
  return result;
}

Table::Table(std::vector<std::string> headings) {
  for (std::string& heading : headings) {
    flush_right_.push_back(heading.starts_with('>'));
    if (flush_right_.back()) heading.erase(0, 1);
  }
  rows_.push_back(std::move(headings));
}

void Table::add_row(std::vector<std::string> cells) {
  cells.resize(flush_right_.size());
  rows_.push_back(std::move(cells));
}

std::string Table::line(const std::vector<std::string>& cells,
                        const std::vector<size_t>& widths) const {
  std::string line;
  for (size_t c = 0; c < cells.size(); ++c) {
    const std::string padding(widths[c] - display_width(cells[c]), ' ');
    if (c > 0) line += "  ";
    line += flush_right_[c] ? padding + cells[c] : cells[c] + padding;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + '\n';
}

std::string Table::text() const {
  std::vector<size_t> widths(flush_right_.size(), 0);
  for (const auto& row : rows_) {
    for (size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], display_width(row[c]));
  }
  std::vector<std::string> rule;
  rule.reserve(widths.size());
  for (const size_t width : widths) rule.emplace_back(width, '-');
  std::string text = line(rows_[0], widths) + line(rule, widths);
  for (size_t r = 1; r < rows_.size(); ++r) text += line(rows_[r], widths);
  return text;
}

std::string one_line(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return text;
}

}  // namespace anyslot::cli
