#include "table.h"

#include <gtest/gtest.h>

namespace anyslot::cli {
namespace {

TEST(Table, AlignsColumns) {
  Table table({"method", ">time"});
  table.add_row({"lazy", "1.5 ms"});
  table.add_row({"Éric", "120.0 ms"});
  EXPECT_EQ(table.text(),
            "method      time\n"
            "------  --------\n"
            "lazy      1.5 ms\n"
            "Éric    120.0 ms\n");
}

TEST(Table, CutsLongTextAtCharacters) {
  EXPECT_EQ(shortened("short", 5), "short");
  EXPECT_EQ(shortened("a long text", 7), "a lo...");
  EXPECT_EQ(shortened("ééééééé", 6), "ééé...");
}

TEST(OneLine, HasNoControlCharacters) { EXPECT_EQ(one_line("a\nb\x1b[31mé\x7f"), "a b [31mé "); }

TEST(Table, CountsWideCharacters) {
  EXPECT_EQ(display_width("日本"), 4);
  EXPECT_EQ(display_width("e\xcc\x81"), 1) << "a letter and its accent";
}

}  // namespace
}  // namespace anyslot::cli
