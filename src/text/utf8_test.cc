#include "text/utf8.h"

#include <gtest/gtest.h>

namespace anyslot {
namespace {

std::string lossy(std::string_view bytes) {
  std::string out;
  append_utf8_lossy(out, bytes);
  return out;
}

TEST(Utf8, EveryCodePointRoundTrips) {
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    std::string text = "x";
    append_code_point(text, c);
    ASSERT_EQ(find_invalid_utf8(text), std::nullopt) << static_cast<uint32_t>(c);
    ASSERT_EQ(first_code_point(std::string_view(text).substr(1)), c);
    ASSERT_EQ(last_code_point(text), c);
    ASSERT_EQ(lossy(text), text);
  }
}

TEST(Utf8, FindsTheFirstBadByte) {
  EXPECT_EQ(find_invalid_utf8("0123456789abcdef\xFFx"), 16U);
  EXPECT_EQ(find_invalid_utf8("é\x80"), 2U);
  EXPECT_EQ(find_invalid_utf8("ab\xE6\x97"), 2U);         // cut short
  EXPECT_EQ(find_invalid_utf8("\xC0\xAF"), 0U);           // overlong
  EXPECT_EQ(find_invalid_utf8("\xE0\x80\x80"), 0U);       // overlong
  EXPECT_EQ(find_invalid_utf8("\xF0\x8F\xBF\xBF"), 0U);   // overlong
  EXPECT_EQ(find_invalid_utf8("a\xED\xA0\x80"), 1U);      // surrogate
  EXPECT_EQ(find_invalid_utf8("a\xF4\x90\x80\x80"), 1U);  // above 10FFFF
  EXPECT_EQ(find_invalid_utf8(""), std::nullopt);
  EXPECT_EQ(find_invalid_utf8(std::string_view("\0", 1)), std::nullopt);
}

// The examples of the Unicode standard, section 3.9, "U+FFFD Substitution of Maximal Subparts".
TEST(Utf8, ReplacesMaximalSubparts) {
  const std::string r(kReplacementCharacter);
  EXPECT_EQ(lossy("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"), r + r + r + r + r + r + r + r + "A");
  EXPECT_EQ(lossy("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41"), r + r + r + r + r + r + r + r + "A");
  EXPECT_EQ(lossy("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42"), r + r + r + r + r + "A" + r + r + "B");
  EXPECT_EQ(lossy("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"), r + r + r + r + "A");
}

TEST(Utf8, WhiteSpaceIsTheUnicodeProperty) {
  std::u32string found;
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (is_white_space(c)) found += c;
  }
  const std::u32string expected =
      U"\t\n\v\f\r \u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009"
      U"\u200a\u2028\u2029\u202f\u205f\u3000";
  EXPECT_EQ(found, expected);
}

}  // namespace
}  // namespace anyslot
