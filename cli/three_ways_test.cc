#include "three_ways.h"

#include <gtest/gtest.h>

namespace anyslot::cli {
namespace {

TEST(ThreeWays, InliningMovesTheTemplatesRangesAlong) {
  Segment document{SegmentKind::kDocument, "- Title: <|x|>\n", {}, {{0, 9}, {14, 15}}, "d"};
  Segment question{SegmentKind::kText, "Q: <|x|>", {}, {{0, 3}}, ""};
  const Segment inlined = inlined_segment({document, question});
  EXPECT_EQ(inlined.kind, SegmentKind::kText);
  EXPECT_EQ(inlined.text, "- Title: <|x|>\nQ: <|x|>");
  ASSERT_EQ(inlined.markup.size(), 3);
  EXPECT_EQ(inlined.markup[2].begin, 15);
  EXPECT_EQ(inlined.markup[2].end, 18);
}

}  // namespace
}  // namespace anyslot::cli
