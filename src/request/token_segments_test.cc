#include "request/token_segments.h"

#include <gtest/gtest.h>

namespace anyslot {
namespace {

TokenSegment text(std::vector<int32_t> ids) { return {SegmentKind::kText, std::move(ids), "", -1}; }
TokenSegment document(std::vector<int32_t> ids, std::string id = "") {
  return {SegmentKind::kDocument, std::move(ids), std::move(id), -1};
}

TEST(NormalizeSegments, MergesAdjacentTextAndDropsEmptyText) {
  const auto result = normalize_segments({text({1}), text({}), text({2, 3})});
  ASSERT_TRUE(result.ok());
  ASSERT_EQ(result->size(), 1U);
  EXPECT_EQ((*result)[0].token_ids, (std::vector<int32_t>{1, 2, 3}));
  EXPECT_EQ((*result)[0].kind, SegmentKind::kText);
}

TEST(NormalizeSegments, TheTextBeforeTheFirstDocumentIsAnUnlistedDocument) {
  const auto result = normalize_segments(
      {text({1}), document({2}, "a"), text({3}), document({4}, "b"), text({5}), text({6})});
  ASSERT_TRUE(result.ok());
  ASSERT_EQ(result->size(), 5U);
  EXPECT_EQ((*result)[0].kind, SegmentKind::kDocument);
  EXPECT_EQ((*result)[0].document_index, -1);
  EXPECT_EQ((*result)[1].document_index, 0);
  EXPECT_EQ((*result)[2].kind, SegmentKind::kText);
  EXPECT_EQ((*result)[3].document_index, 1);
  EXPECT_EQ((*result)[4].token_ids, (std::vector<int32_t>{5, 6}));
}

TEST(NormalizeSegments, RefusesWhatCannotBeAnswered) {
  EXPECT_EQ(normalize_segments({}).status().message(), "the request has no tokens");
  EXPECT_EQ(normalize_segments({text({})}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(
      normalize_segments({text({1}), document({2}, "last")}).status().message(),
      "the request ends in document 0 ('last'); a text segment with the question must follow it");
  EXPECT_EQ(normalize_segments({document({1}), document({}), text({3})}).status().message(),
            "document 1 has no tokens; leave it out");
}

}  // namespace
}  // namespace anyslot
