#include "log.h"

#include <gtest/gtest.h>

namespace anyslot::server {
namespace {

TEST(Log, ShowsTextOfClientsOnOneLine) {
  EXPECT_EQ(loggable("/x?\xc3\xa9"), "/x?\xc3\xa9");
  EXPECT_EQ(loggable("a\nb\x1b[1m\x7f"), "a?b?[1m?");
  EXPECT_EQ(loggable("\xc2\x9b"
                     "1m\xc2\xa0"),
            "\xc2?1m\xc2\xa0")
      << "U+009B begins a sequence of a terminal";
  EXPECT_EQ(loggable("abcdef", 3), "abc...");
}

}  // namespace
}  // namespace anyslot::server
