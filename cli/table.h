#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace anyslot::cli {

/// A table of text for people: columns as wide as their widest cell, two spaces apart, a line under
/// the head. Columns whose heading starts with '>' are set flush right.
class Table {
 public:
  explicit Table(std::vector<std::string> headings);
  /// As many cells as there are headings.
  void add_row(std::vector<std::string> cells);
  std::string text() const;

 private:
  std::string line(const std::vector<std::string>& cells, const std::vector<size_t>& widths) const;

  std::vector<bool> flush_right_;
  std::vector<std::vector<std::string>> rows_;  // the headings first
};

/// Columns of a terminal that a UTF-8 text takes.
size_t display_width(std::string_view text);

/// `text` cut to `width` columns; what was cut ends in "...".
std::string shortened(std::string_view text, size_t width);

/// `text` with spaces for its control characters: what comes out of a file may hold any.
std::string one_line(std::string text);

}  // namespace anyslot::cli
