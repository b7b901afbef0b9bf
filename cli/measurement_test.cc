#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "demo_measurement.h"
#include "method_comparison.h"
#include "three_ways.h"

namespace anyslot::cli {
namespace {

std::vector<InputRow> two_questions() {
  InputRow row;
  for (const char* title : {"A", "B", "C", "D", "E", "F"}) {
    row.documents.push_back({title, std::string("text of ") + title, ""});
  }
  row.question = "first?";
  row.answers = {"one"};
  InputRow other = row;
  other.question = "second?";
  other.answers = {"two"};
  return {row, other};
}

std::string order_of(const DemoRequest& request) {
  std::string order;
  for (const Document& document : request.documents) order += *document.title;
  return order;
}

TEST(DemoPlan, AsksEveryQuestionInNewOrders) {
  const DemoPlan plan = plan_demo(two_questions(), 5, 1);
  EXPECT_EQ(plan.num_questions, 4);
  EXPECT_EQ(plan.num_documents, 6);
  ASSERT_EQ(plan.requests.size(), 20);
  std::set<std::string> orders;
  for (const DemoRequest& request : plan.requests) {
    const std::string order = order_of(request);
    EXPECT_EQ(std::set<char>(order.begin(), order.end()).size(), 6)
        << "a document is lost in " << order;
    orders.insert(order);
  }
  EXPECT_GE(orders.size(), 18);
  EXPECT_EQ(order_of(plan.warm_up), "ABCDEF");
}

TEST(DemoPlan, KnowsTheAnswersOfTheOrder) {
  const DemoPlan plan = plan_demo(two_questions(), 2, 7);
  int num_order_questions = 0;
  for (const DemoRequest& request : plan.requests) {
    if (request.question == "What is the title of the first document?") {
      EXPECT_EQ(request.answers, std::vector<std::string>{*request.documents.front().title});
      ++num_order_questions;
    } else if (request.question == "What is the title of the last document?") {
      EXPECT_EQ(request.answers, std::vector<std::string>{*request.documents.back().title});
      ++num_order_questions;
    } else {
      EXPECT_EQ(request.answers.front(), request.question == "first?" ? "one" : "two");
    }
  }
  EXPECT_EQ(num_order_questions, 4);
}

TEST(DemoPlan, IsThatOfItsSeed) {
  const auto orders = [](uint64_t seed) {
    std::string all;
    for (const DemoRequest& request : plan_demo(two_questions(), 2, seed).requests) {
      all += order_of(request);
    }
    return all;
  };
  EXPECT_EQ(orders(3), orders(3));
  EXPECT_NE(orders(3), orders(4));
}

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

TEST(MethodComparison, MeasuresAgainstTheLargestLogit) {
  EXPECT_DOUBLE_EQ(relative_difference({1, -4, 2}, {1, -4, 3}), 0.25);
  EXPECT_DOUBLE_EQ(relative_difference({0, 0}, {0, 0}), 0);
}

TEST(MethodComparison, NeverAcceptsWhatCannotBeCompared) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(relative_difference({1, nan}, {1, nan}), infinity);
  EXPECT_EQ(relative_difference({1}, {1, 2}), infinity);
  EXPECT_EQ(relative_difference({}, {}), infinity);
}

}  // namespace
}  // namespace anyslot::cli
