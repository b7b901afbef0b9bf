#include "metrics.h"

#include <gtest/gtest.h>

namespace anyslot::bench {
namespace {

RequestRecord record_of(double started_ms, double ttft_ms, std::vector<double> gaps,
                        int64_t output_tokens, int64_t prompt_tokens, int64_t cached_tokens) {
  RequestRecord record;
  record.started_ms = started_ms;
  record.has_first_token = true;
  record.ttft_ms = ttft_ms;
  record.e2el_ms = ttft_ms;
  for (const double gap : gaps) record.e2el_ms += gap;
  record.itl_ms = std::move(gaps);
  record.output_tokens = output_tokens;
  record.prompt_tokens = prompt_tokens;
  record.cached_tokens = cached_tokens;
  return record;
}

/// Three answers of 3, 2 and 1 tokens, and one that broke off.
std::vector<RequestRecord> trace() {
  std::vector<RequestRecord> records = {
      record_of(0, 100, {10, 30}, 3, 50, 20), record_of(50, 200, {40}, 2, 70, 70),
      record_of(60, 500, {500}, 2, 1000, 1000), record_of(400, 60, {}, 1, 30, 0)};
  records[2].failure = Failure::kClosed;
  return records;
}

RunFacts two_seconds() {
  RunFacts facts;
  facts.duration_s = 2;
  facts.goodput.ttft_ms = 100;
  facts.goodput.tpot_ms = 30;
  return facts;
}

TEST(Summarize, AgreesWithATraceComputedByHand) {
  const ServeMetrics metrics = summarize(trace(), two_seconds());
  EXPECT_EQ(metrics.completed, 3);
  EXPECT_EQ(metrics.failed, 1);
  EXPECT_EQ(metrics.failures, (std::map<std::string, int64_t>{{"closed", 1}}));
  EXPECT_EQ(metrics.total_input_tokens, 150);
  EXPECT_EQ(metrics.total_output_tokens, 6);
  EXPECT_DOUBLE_EQ(metrics.request_throughput, 1.5);
  EXPECT_DOUBLE_EQ(metrics.input_throughput, 75);
  EXPECT_DOUBLE_EQ(metrics.output_throughput, 3);
  EXPECT_DOUBLE_EQ(metrics.total_token_throughput, 78);
  EXPECT_DOUBLE_EQ(metrics.max_output_tokens_per_s, 6);
  EXPECT_EQ(metrics.max_concurrent_requests, 2);

  EXPECT_DOUBLE_EQ(metrics.ttft_ms.mean, 120);
  EXPECT_DOUBLE_EQ(metrics.ttft_ms.median, 100);
  EXPECT_NEAR(metrics.ttft_ms.std, 58.8784, 1e-4);
  EXPECT_DOUBLE_EQ(metrics.ttft_ms.p90, 180);
  EXPECT_DOUBLE_EQ(metrics.ttft_ms.p99, 198);
  EXPECT_NEAR(metrics.e2el_ms.mean, 146.6667, 1e-4);
  EXPECT_DOUBLE_EQ(metrics.e2el_ms.p90, 220);
}

TEST(Summarize, LeavesTheFirstTokenOutOfTpot) {
  const ServeMetrics metrics = summarize(trace(), two_seconds());
  // 40 ms over the two tokens after the first, and 40 ms over one; one token alone has none.
  EXPECT_DOUBLE_EQ(metrics.tpot_ms.mean, 30);
  EXPECT_DOUBLE_EQ(metrics.tpot_ms.std, 10);
  EXPECT_DOUBLE_EQ(metrics.tpot_ms.p90, 38);
}

TEST(Summarize, CountsEveryGapInItl) {
  const ServeMetrics metrics = summarize(trace(), two_seconds());
  EXPECT_NEAR(metrics.itl_ms.mean, 80.0 / 3, 1e-9);  // 10, 30 and 40
  EXPECT_DOUBLE_EQ(metrics.itl_ms.median, 30);
  EXPECT_DOUBLE_EQ(metrics.itl_ms.p90, 38);
  EXPECT_DOUBLE_EQ(metrics.itl_ms.p99, 39.8);
  EXPECT_NEAR(metrics.itl_ms.std, 12.4722, 1e-4);
}

TEST(Summarize, GoodRequestsMeetAllTargets) {
  EXPECT_DOUBLE_EQ(summarize(trace(), two_seconds()).request_goodput.value_or(-1), 1);
  RunFacts without = two_seconds();
  without.goodput = {};
  EXPECT_FALSE(summarize(trace(), without).request_goodput.has_value());
}

TEST(Summarize, TakesTheHitRatioFromCountersElseFromUsage) {
  EXPECT_DOUBLE_EQ(summarize(trace(), two_seconds()).hit_ratio.value_or(-1), 0.6);  // 90 of 150
  RunFacts facts = two_seconds();
  facts.before.prompt_tokens = 100;
  facts.before.cached_tokens = 40;
  facts.after.prompt_tokens = 400;
  facts.after.cached_tokens = 100;
  EXPECT_DOUBLE_EQ(summarize(trace(), facts).hit_ratio.value_or(-1), 0.2);
  std::vector<RequestRecord> silent = trace();
  for (RequestRecord& record : silent) record.cached_tokens.reset();
  EXPECT_FALSE(summarize(silent, two_seconds()).hit_ratio.has_value());
}

TEST(Summarize, MeansScoresOverAnswersThatHaveThem) {
  std::vector<RequestRecord> records = trace();
  records[0].scores = AnswerScores{1, 1, 1, 1, 1};
  records[1].scores = AnswerScores{0, 1, 0.5, 0.25, 0};
  records[2].scores = AnswerScores{1, 1, 1, 1, 1};  // failed: does not count
  const ServeMetrics metrics = summarize(records, two_seconds());
  EXPECT_EQ(metrics.scored, 2);
  ASSERT_TRUE(metrics.scores.has_value());
  EXPECT_DOUBLE_EQ(metrics.scores->exact_match, 0.5);
  EXPECT_DOUBLE_EQ(metrics.scores->f1, 0.75);
  EXPECT_DOUBLE_EQ(metrics.scores->rouge_l, 0.625);
}

TEST(MetricsJson, HasVllmsNames) {
  const auto json = metrics_json(summarize(trace(), two_seconds()));
  for (const char* name : {"duration",
                           "completed",
                           "failed",
                           "total_input_tokens",
                           "total_output_tokens",
                           "request_throughput",
                           "request_goodput",
                           "output_throughput",
                           "total_token_throughput",
                           "max_output_tokens_per_s",
                           "max_concurrent_requests",
                           "mean_ttft_ms",
                           "median_ttft_ms",
                           "std_ttft_ms",
                           "p90_ttft_ms",
                           "p99_ttft_ms",
                           "mean_tpot_ms",
                           "p99_tpot_ms",
                           "mean_itl_ms",
                           "p99_itl_ms",
                           "mean_e2el_ms",
                           "p99_e2el_ms"}) {
    ASSERT_TRUE(json.contains(name)) << name;
    EXPECT_TRUE(json[name].is_number()) << name;
  }
  EXPECT_EQ(json["failed_closed"], 1);
  EXPECT_TRUE(json["exact_match"].is_null());
}

}  // namespace
}  // namespace anyslot::bench
