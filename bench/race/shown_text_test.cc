#include "shown_text.h"

#include <gtest/gtest.h>

#include "cli/table.h"

namespace anyslot::bench {
namespace {

TEST(VisibleLine, ShowsWhatWouldActOrBeUnseen) {
  EXPECT_EQ(visible_line("plain, é 字 😀"), "plain, é 字 😀");
  EXPECT_EQ(visible_line("a\x1b[2Jb\n\t\x7f"), "a␛[2Jb␊␉␡");
  EXPECT_EQ(visible_line("\xC2\x9B"), "[U+009B]");      // C1: a terminal's CSI
  EXPECT_EQ(visible_line("\xE2\x80\xAE"), "[U+202E]");  // writes from right to left
  EXPECT_EQ(visible_line("\xEF\xBF\xBE\xEF\xBF\xBF"), "[U+FFFE][U+FFFF]");
  EXPECT_EQ(visible_line("a\xFF\xE2\x80"), "a\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(visible_line(std::string("\0", 1)), "␀");
}

std::vector<std::string> wrapped(const std::string& text, size_t width) {
  std::vector<std::string> lines;
  for (const TextRange& line : wrapped_lines(text, width)) {
    lines.push_back(text.substr(line.begin, line.end - line.begin));
  }
  return lines;
}

TEST(WrappedLines, BreakAtSpacesWhereThereAreAny) {
  using Lines = std::vector<std::string>;
  EXPECT_EQ(wrapped("", 5), Lines{""});
  EXPECT_EQ(wrapped("one two three", 20), Lines{"one two three"});
  EXPECT_EQ(wrapped("one two three", 7), (Lines{"one two", "three"}));
  EXPECT_EQ(wrapped("one two three", 6), (Lines{"one", "two", "three"}));
  EXPECT_EQ(wrapped("abcdefgh", 3), (Lines{"abc", "def", "gh"}));
  EXPECT_EQ(wrapped(" abcdefgh", 3), (Lines{" ab", "cde", "fgh"}));
  EXPECT_EQ(wrapped("字字字", 4), (Lines{"字字", "字"}));  // two columns each
  EXPECT_EQ(wrapped("字", 1), Lines{"字"});
}

TEST(Numbers, HaveFewDigits) {
  EXPECT_EQ(duration_text(4.23), "4.2 ms");
  EXPECT_EQ(duration_text(151.4), "151 ms");
  EXPECT_EQ(duration_text(2314), "2.31 s");
  EXPECT_EQ(duration_text(23140), "23.1 s");
  EXPECT_EQ(times_text(6.27), "6.3");
  EXPECT_EQ(times_text(17.4), "17");
  EXPECT_EQ(times_text(1234.4), "1,234");
}

}  // namespace
}  // namespace anyslot::bench
