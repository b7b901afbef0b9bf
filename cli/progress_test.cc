#include "progress.h"

#include <gtest/gtest.h>

namespace anyslot::cli {
namespace {

TEST(Progress, ShowsTheTimeLeft) {
  EXPECT_EQ(progress_text("answering", 10, 40, 5),
            "answering [#######.......................] 10/40, 15 s left");
  EXPECT_EQ(progress_text("w", 1, 100, 60),
            "w [..............................] 1/100, 1 h 39 min left");
}

TEST(Progress, HasNoTimeLeftAtBothEnds) {
  EXPECT_EQ(progress_text("w", 0, 2, 1), "w [..............................] 0/2");
  EXPECT_EQ(progress_text("w", 2, 2, 1), "w [##############################] 2/2");
  EXPECT_EQ(progress_text("w", 0, 0, 1), "w [##############################] 0/0");
}

}  // namespace
}  // namespace anyslot::cli
