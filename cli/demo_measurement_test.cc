#include "demo_measurement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

namespace anyslot::cli {
namespace {

std::vector<InputRow> two_questions(const std::string& titles = "ABCDEF") {
  InputRow row;
  for (const char letter : titles) {
    const std::string title(1, letter);
    row.documents.push_back({title, "text of " + title, ""});
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
  std::set<std::string> orders = {order_of(plan.warm_up)};
  for (const DemoRequest& request : plan.requests) {
    const std::string order = order_of(request);
    EXPECT_EQ(std::set<char>(order.begin(), order.end()).size(), 6)
        << "a document is lost in " << order;
    EXPECT_TRUE(orders.insert(order).second) << order << " comes twice";
  }
  EXPECT_EQ(order_of(plan.warm_up), "ABCDEF");
}

// Random orders alone would repeat early: of the 6 orders of 3 documents, 5 are left for requests.
TEST(DemoPlan, RepeatsNoOrderBeforeAllHaveCome) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const DemoPlan plan = plan_demo(two_questions("ABC"), 3, seed);
    ASSERT_EQ(plan.requests.size(), 12);
    std::set<std::string> orders = {order_of(plan.warm_up)};
    for (size_t r = 0; r < 5; ++r) orders.insert(order_of(plan.requests[r]));
    EXPECT_EQ(orders.size(), 6) << "seed " << seed;
    orders.clear();
    for (size_t r = 5; r < 11; ++r) orders.insert(order_of(plan.requests[r]));
    EXPECT_EQ(orders.size(), 6) << "seed " << seed;
  }
}

TEST(DemoPlan, BearsDocumentsWithoutOtherOrders) {
  EXPECT_EQ(plan_demo(two_questions("A"), 3, 1).requests.size(), 12);
  EXPECT_EQ(plan_demo(two_questions("AA"), 3, 1).requests.size(), 12);
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

}  // namespace
}  // namespace anyslot::cli
