#include "sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace anyslot::bench {
namespace {

using Json = nlohmann::ordered_json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr SweepFacts kFacts{.kv_bytes_per_token = 1000, .max_model_len = 8192, .full_seconds = 0.1};

/// ms to the first token that the fake target takes.
double fake_ttft(Method method) { return method == Method::kLazy ? 10 : 40; }

Expected<ServeResult> fake_run(const SweepPoint& point, Method method) {
  ServeResult result;
  result.metrics.completed = point.serve.num_prompts - 1;
  result.metrics.failed = 1;
  result.metrics.ttft_ms.mean = fake_ttft(method);
  result.metrics.output_throughput = 1000 / fake_ttft(method);
  result.metrics.peak_kv = PeakKv{3, 5, 10, 1 << 20};
  return result;
}

TEST(Sweep, PlansEveryFigure) {
  const auto figures = plan_sweep({}, kFacts);
  ASSERT_TRUE(figures);
  ASSERT_EQ(figures->size(), sweep_figure_names().size());
  for (size_t i = 0; i < figures->size(); ++i) {
    const SweepFigure& figure = (*figures)[i];
    EXPECT_EQ(figure.id, sweep_figure_names()[i]);
    EXPECT_FALSE(figure.charts.empty());
    std::set<double> places;
    for (const SweepPoint& point : figure.points) places.insert(point.x);
    EXPECT_EQ(places.size(), figure.points.size()) << figure.id;
  }
}

TEST(Sweep, RatesFollowWhatFullServes) {
  const auto figures = plan_sweep({.figures = {"rate-skewed"}}, kFacts);
  ASSERT_TRUE(figures);
  std::vector<double> rates;
  for (const SweepPoint& point : figures->front().points) {
    rates.push_back(point.serve.arrivals.request_rate);
    EXPECT_EQ(point.serve.workload.choice, DocumentChoice::kZipf);
    EXPECT_EQ(point.serve.workload.order, DocumentOrder::kNew);
    EXPECT_EQ(point.serve.num_warmups, 8);
  }
  EXPECT_THAT(rates, ElementsAre(5, 20, 80));
  EXPECT_GE(figures->front().points.back().serve.num_prompts, 32);
}

TEST(Sweep, TheHighestRateHasMostRequestsWhereverItStands) {
  const auto figures = plan_sweep({.figures = {"rate-skewed"}, .request_rates = {3, 7, 2}}, kFacts);
  ASSERT_TRUE(figures);
  std::vector<int> num_prompts;
  for (const SweepPoint& point : figures->front().points) {
    num_prompts.push_back(point.serve.num_prompts);
  }
  EXPECT_THAT(num_prompts, ElementsAre(6, 32, 6));
}

TEST(Sweep, AtARateAllHaveTheSameShortMemoryUnlessOneIsGiven) {
  const auto figures = plan_sweep({.figures = {"rate-uniform"}}, kFacts);
  ASSERT_TRUE(figures);
  EXPECT_THAT(figures->front().text, HasSubstr("half of the documents' KV"));
  for (const SweepPoint& point : figures->front().points) {
    EXPECT_EQ(point.kv_cache_bytes, 100 * 256 * 1000 / 2);
  }
  SweepOptions options{.figures = {"rate-uniform"}};
  options.engine.kv_cache_bytes = 1 << 30;
  const auto given = plan_sweep(options, kFacts);
  ASSERT_TRUE(given);
  EXPECT_THAT(given->front().text, Not(HasSubstr("memory")));
  for (const SweepPoint& point : given->front().points) EXPECT_EQ(point.kv_cache_bytes, 0);
}

TEST(Sweep, AtARateAPromptFitsWhereDocumentsAreFew) {
  const auto figures = plan_sweep(
      {.figures = {"rate-uniform"}, .num_documents = 6, .documents_per_prompt = 5}, kFacts);
  ASSERT_TRUE(figures);
  EXPECT_THAT(figures->front().text, HasSubstr("the memory that one prompt needs under block"));
  for (const SweepPoint& point : figures->front().points) {
    EXPECT_GT(point.kv_cache_bytes, 2 * 5 * 256 * 1000);
  }
}

TEST(Sweep, MemoryBudgetsCountWholeBlocks) {
  const auto figures =
      plan_sweep({.figures = {"kv-budget"}, .num_documents = 100, .document_len = 100}, kFacts);
  ASSERT_TRUE(figures);
  for (const SweepPoint& point : figures->front().points) {
    EXPECT_EQ(point.kv_cache_bytes, static_cast<int64_t>(point.x * 100 * 112 * 1000));
  }
}

TEST(Sweep, MemoryBudgetsHoldAPromptUnderEveryMethod) {
  // Six blocks of documents, held twice, and 7 of the question, the answer and the template.
  const auto figures = plan_sweep({.figures = {"kv-budget"},
                                   .num_documents = 20,
                                   .documents_per_prompt = 3,
                                   .document_len = 20,
                                   .output_len = 16},
                                  kFacts);
  ASSERT_TRUE(figures);
  std::vector<double> shares;
  for (const SweepPoint& point : figures->front().points) shares.push_back(point.x);
  EXPECT_THAT(shares, ElementsAre(0.5, 1, 2));  // of 40 blocks
}

TEST(Sweep, RefusesWhatItDoesNotKnowAndWhatDoesNotFit) {
  const auto unknown = plan_sweep({.figures = {"speed"}}, kFacts);
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.status().message(), HasSubstr("\"speed\" is no figure"));
  EXPECT_THAT(unknown.status().message(), HasSubstr("rate-skewed"));
  const auto too_long = plan_sweep({.figures = {"rate-skewed"}, .document_len = 4096}, kFacts);
  ASSERT_FALSE(too_long);
  EXPECT_THAT(too_long.status().message(), HasSubstr("8192"));
}

TEST(Sweep, LeavesOutLongPointsAndSaysSo) {
  const auto figures =
      plan_sweep({.figures = {"document-count"}, .document_len = 1024},
                 {.kv_bytes_per_token = 1000, .max_model_len = 8192, .full_seconds = 0.1});
  ASSERT_TRUE(figures);
  EXPECT_EQ(figures->front().points.size(), 3U);  // of 1, 2, 5 and 10 documents
  EXPECT_THAT(figures->front().text, HasSubstr("One point longer than the model's 8192 tokens"));
}

TEST(Sweep, HasARowPerPointAndMethodInTheOrderOfMethods) {
  const auto figures = plan_sweep({.figures = {"shared-document"}}, kFacts);
  ASSERT_TRUE(figures);
  int64_t last_done = 0;
  const auto result = run_sweep(
      *figures, {Method::kFull, Method::kLazy}, fake_run, [] { return false; },
      [&](int64_t done) { last_done = done; });
  ASSERT_TRUE(result);
  EXPECT_EQ(last_done, 6);
  std::vector<std::pair<std::string, double>> rows;
  for (const Json& row : result->front().at("rows")) {
    rows.emplace_back(row.at("series"), row.at("max_concurrency"));
    EXPECT_EQ(row.at("peak_kv_mib"), 3.0);
    EXPECT_TRUE(row.at("hit_ratio").is_null());
  }
  EXPECT_THAT(rows, ElementsAre(std::pair{"full", 1}, std::pair{"full", 4}, std::pair{"full", 16},
                                std::pair{"lazy", 1}, std::pair{"lazy", 4}, std::pair{"lazy", 16}));
  EXPECT_EQ(failed_requests(*result), 6);
}

TEST(Sweep, KeepsWhatWasMeasuredWhenStopped) {
  const auto figures = plan_sweep({}, kFacts);
  ASSERT_TRUE(figures);
  int runs = 0;
  const auto result = run_sweep(
      *figures, {Method::kLazy},
      [&](const SweepPoint& point, Method method) {
        Expected<ServeResult> measured = fake_run(point, method);
        measured->stopped = ++runs == 3;  // in the middle of it
        return measured;
      },
      [&] { return runs == 3; }, [](int64_t) {});
  ASSERT_TRUE(result);
  ASSERT_EQ(result->size(), 1U);
  EXPECT_EQ(result->front().at("rows").size(), 2U);
}

TEST(Sweep, RanksTheMethodsAndSaysWhy) {
  const auto figures = plan_sweep({.figures = {"rate-skewed"}}, kFacts);
  ASSERT_TRUE(figures);
  const auto result = run_sweep(
      *figures, {Method::kFull, Method::kLazy}, fake_run, [] { return false; }, [](int64_t) {});
  ASSERT_TRUE(result);
  const Json ranking = sweep_ranking(*result);
  EXPECT_EQ(ranking.at("request_rate"), 80);
  ASSERT_EQ(ranking.at("rows").size(), 2U);
  EXPECT_EQ(ranking["rows"][0]["series"], "lazy");
  EXPECT_EQ(ranking["rows"][1]["series"], "full");
  EXPECT_EQ(ranking["rows"][1]["ttft_over_least"], 4);
  EXPECT_EQ(ranking["rows"][1]["throughput_over_most"], 0.25);
  for (const Json& row : ranking["rows"]) {
    for (const Json& column : ranking["columns"]) {
      EXPECT_TRUE(row.contains(column.at("field"))) << column;
    }
  }
  const std::string summary = sweep_summary(ranking);
  EXPECT_THAT(summary, HasSubstr("At 80 requests per second lazy answers first: 10.0 ms"));
  EXPECT_THAT(summary, HasSubstr("4.00 times sooner than full"));
  EXPECT_THAT(summary, HasSubstr("And lazy generates most: 100 tokens per second, 4.00 times as "
                                 "many as full"));
}

TEST(Sweep, RanksNothingWhereThereIsNothingToCompare) {
  EXPECT_TRUE(sweep_ranking(Json::array()).is_null());
  EXPECT_EQ(sweep_summary(nullptr), "");
}

TEST(Sweep, SummaryDoesNotHideThatAnotherGeneratesMost) {
  const Json ranking = Json::parse(R"({"request_rate": 2, "rows": [
      {"series": "lazy", "mean_ttft_ms": 5.0, "output_throughput": 90.0},
      {"series": "block", "mean_ttft_ms": 6.0, "output_throughput": 99.0}]})");
  EXPECT_THAT(sweep_summary(ranking), HasSubstr("lazy answers first: 5.0 ms"));
  EXPECT_THAT(sweep_summary(ranking), HasSubstr("block generates most: 99 tokens per second, 1.10 "
                                                "times as many as lazy"));
}

}  // namespace
}  // namespace anyslot::bench
