#include <gtest/gtest.h>

#include <algorithm>

#include "serve.h"
#include "support/temporary_folder.h"
#include "test_fake_server.h"

namespace anyslot::bench {
namespace {

/// Rows whose questions tell the fake server what to do.
std::string rows_asking(const std::vector<std::string>& questions) {
  std::string text;
  for (const std::string& question : questions) {
    text += R"({"documents": ["a text"], "question": ")" + question +
            R"(", "answers": ["one two three"]})" + "\n";
  }
  return text;
}

class HttpTargetTest : public ::testing::Test {
 protected:
  static Expected<std::unique_ptr<Target>> open(const std::string& url) {
    HttpTargetOptions options;
    options.base_url = url;
    options.model = "fake";
    return open_http_target(options);
  }
  Expected<ServeResult> serve(const std::vector<std::string>& questions, ServeOptions options = {},
                              std::string url = "") {
    options.workload.kind = WorkloadKind::kRag;
    options.workload.dataset_path = folder_.write("rows.jsonl", rows_asking(questions));
    auto target = open(url.empty() ? server_.url() + "/v1" : url);
    if (!target) return target.status();
    Progress progress;
    return run_serve(options, **target, progress);
  }

  FakeServer server_;
  testing_support::TemporaryFolder folder_;
};

TEST_F(HttpTargetTest, MeasuresWholeAnswers) {
  const auto result = serve({"good", "good too"});
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->metrics.completed, 2);
  EXPECT_EQ(result->metrics.total_output_tokens, 8);
  EXPECT_EQ(result->metrics.total_input_tokens, 20);
  EXPECT_DOUBLE_EQ(result->metrics.hit_ratio.value_or(-1), 0.6);
  EXPECT_DOUBLE_EQ(result->metrics.scores->exact_match, 1);
  for (const RequestRecord& record : result->records) {
    EXPECT_EQ(record.text, "one two three");
    EXPECT_EQ(record.itl_ms.size(), 3U);  // three pieces and the end; the role is no token
    double sum = record.ttft_ms;
    for (const double gap : record.itl_ms) sum += gap;
    EXPECT_NEAR(record.e2el_ms, sum, 1e-6);
  }
}

TEST_F(HttpTargetTest, CountsEachWayToFailWithItsReason) {
  ServeOptions options;
  options.timeout_seconds = 0.3;
  const auto result =
      serve({"good", "do-fail", "do-stall", "do-close", "do-error", "do-plain", "good"}, options);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->metrics.completed, 2);
  EXPECT_EQ(result->metrics.failures,
            (std::map<std::string, int64_t>{
                {"refused", 1}, {"stalled", 1}, {"closed", 1}, {"error", 2}}));
  EXPECT_NE(result->records[1].error.find("429"), std::string::npos);
  EXPECT_NE(result->records[1].error.find("full"), std::string::npos);
  EXPECT_EQ(result->records[3].text, "one ");
  EXPECT_EQ(result->records[4].error, "broken");
  EXPECT_EQ(result->metrics.total_output_tokens, 8);  // of whole answers only
}

TEST_F(HttpTargetTest, CountsAServerThatIsNotThere) {
  std::string gone;
  {
    const FakeServer closed;
    gone = closed.url();
  }
  const auto result = serve({"good"}, {}, gone);
  EXPECT_FALSE(result.ok());  // the words could not be counted
  EXPECT_EQ(result.status().code(), StatusCode::kUnavailable);
}

TEST_F(HttpTargetTest, KeepsToTheConcurrencyAndSendsTheWarmUpFirst) {
  ServeOptions options;
  options.max_concurrency = 2;
  options.num_warmups = 1;
  const auto result = serve(std::vector<std::string>(9, "good"), options);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->metrics.completed, 9);
  EXPECT_EQ(server_.bodies().size(), 10U);
  EXPECT_LE(server_.most_at_once(), 2);
}

TEST_F(HttpTargetTest, ReportsWhatWasMeasuredWhenItIsStopped) {
  ServeOptions options;
  options.workload.kind = WorkloadKind::kRag;
  options.workload.dataset_path = folder_.write("rows.jsonl", rows_asking({"good", "do-stall"}));
  options.max_concurrency = 1;
  auto target = open(server_.url());
  ASSERT_TRUE(target.ok());
  Progress* stop = nullptr;
  Progress progress([&stop](int64_t done, int64_t) {
    if (done == 1) stop->stop();
  });
  stop = &progress;
  const auto result = run_serve(options, **target, progress);
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result->stopped);
  EXPECT_EQ(result->metrics.completed, 1);
  EXPECT_EQ(result->metrics.failed, 0);
}

TEST_F(HttpTargetTest, PutsEarlierAnswersIntoAConversation) {
  ServeOptions options;
  options.workload.kind = WorkloadKind::kMultiRound;
  options.workload.rounds = 2;
  options.num_prompts = 2;
  auto target = open(server_.url());
  ASSERT_TRUE(target.ok());
  Progress progress;
  const auto result = run_serve(options, **target, progress);
  ASSERT_TRUE(result.ok());
  ASSERT_EQ(server_.bodies().size(), 2U);
  EXPECT_NE(server_.bodies()[1].find(R"("content":"one two three","role":"assistant")"),
            std::string::npos)
      << server_.bodies()[1];
}

TEST(HttpTargetOptionsTest, RefusesWhatIsNoUrl) {
  for (const char* url : {"127.0.0.1:80", "https://a", "http://", "http://a:b"}) {
    HttpTargetOptions options;
    options.base_url = url;
    options.model = "m";
    EXPECT_EQ(open_http_target(options).status().code(), StatusCode::kInvalidArgument) << url;
  }
}

}  // namespace
}  // namespace anyslot::bench
