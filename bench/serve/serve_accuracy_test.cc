// The accuracy of the serving benchmark, in process and over HTTP, against that of `anyslot run`.

#include <gtest/gtest.h>

#include <fstream>

#include "cli/input_rows.h"
#include "cli/row_runner.h"
#include "scores.h"
#include "serve.h"
#include "server/test_server.h"
#include "support/temporary_folder.h"

namespace anyslot::bench {
namespace {

constexpr int kRows = 24;

/// Every 37th row of ragqa-dev: all kinds of questions.
std::string some_rows() {
  std::ifstream file(ANYSLOT_SOURCE_DIR "/tests/data/ragqa-dev.jsonl");
  std::string text;
  int number = 0;
  for (std::string line; std::getline(file, line); ++number) {
    if (number % 37 == 0 && number / 37 < kRows) text += line + "\n";
  }
  return text;
}

ServeOptions options_of(const std::string& path) {
  ServeOptions options;
  options.workload.kind = WorkloadKind::kRag;
  options.workload.dataset_path = path;
  options.workload.output_len = 0;
  options.max_concurrency = 4;
  return options;
}

std::vector<std::string> texts_of(Target& target, const std::string& path, ServeMetrics& metrics) {
  Progress progress;
  const auto result = run_serve(options_of(path), target, progress);
  EXPECT_TRUE(result.ok()) << result.status().message();
  std::vector<std::string> texts;
  if (!result.ok()) return texts;
  metrics = result->metrics;
  EXPECT_EQ(metrics.completed, kRows);
  for (const RequestRecord& record : result->records) texts.push_back(record.text);
  return texts;
}

class ServeAccuracy : public ::testing::TestWithParam<Method> {};

TEST_P(ServeAccuracy, EqualsThatOfRun) {
  const testing_support::TemporaryFolder folder;
  const std::string path = folder.write("rows.jsonl", some_rows());
  server::TestServer server(server::bundled_config());

  const auto rows = cli::load_input_rows(path);
  ASSERT_TRUE(rows.ok());
  std::vector<cli::InputRow> with_method = *rows;
  for (cli::InputRow& row : with_method) row.method = GetParam();
  std::vector<std::string> expected;
  double exact = 0;
  const Status status = cli::run_rows(
      server.engine(), with_method, {}, 1, path,
      [&](const cli::InputRow& row, const cli::Completion& completion) {
        expected.push_back(completion.text);
        exact +=
            score_output(completion.text, row.answers, AnswerMetric::kExactMatch, {}).exact_match;
        return Status();
      });
  ASSERT_TRUE(status.ok()) << status.message();
  ASSERT_GT(exact, kRows / 2);

  ServeMetrics metrics;
  const auto in_process = engine_target(server.engine(), GetParam(), "in process");
  EXPECT_EQ(texts_of(*in_process, path, metrics), expected);
  EXPECT_DOUBLE_EQ(metrics.scores->exact_match, exact / kRows);
  EXPECT_GT(metrics.peak_kv->blocks_in_use, 0);

  HttpTargetOptions http;
  http.base_url = "http://127.0.0.1:" + std::to_string(server.port());
  http.method = GetParam();
  http.cache_salt = "over http";
  auto over_http = open_http_target(http);
  ASSERT_TRUE(over_http.ok()) << over_http.status().message();
  EXPECT_EQ(texts_of(**over_http, path, metrics), expected);
  EXPECT_DOUBLE_EQ(metrics.scores->exact_match, exact / kRows);
  ASSERT_TRUE(metrics.hit_ratio.has_value());
  EXPECT_EQ(*metrics.hit_ratio > 0, GetParam() != Method::kFull);
  EXPECT_GT(metrics.peak_kv->total_blocks, 0);
}

INSTANTIATE_TEST_SUITE_P(Methods, ServeAccuracy, ::testing::ValuesIn(kAllMethods),
                         [](const auto& test) { return std::string(method_name(test.param)); });

TEST(EngineTarget, CountsWhatTheEngineRefuses) {
  const testing_support::TemporaryFolder folder;
  const std::string path = folder.write("rows.jsonl", some_rows());
  EngineConfig config = server::bundled_config();
  config.max_model_len = 256;  // too short for most
  auto engine = Engine::open(config);
  ASSERT_TRUE(engine.ok());
  const auto target = engine_target(*engine, Method::kLazy, "");
  Progress progress;
  const auto result = run_serve(options_of(path), *target, progress);
  ASSERT_TRUE(result.ok());
  EXPECT_GT(result->metrics.failures.at("refused"), 0);
  EXPECT_EQ(result->metrics.completed + result->metrics.failed, kRows);
}

TEST(EngineTarget, ServesConversationsAndPoolsOfRandomDocuments) {
  auto engine = Engine::open(server::bundled_config());
  ASSERT_TRUE(engine.ok());
  for (const WorkloadKind kind : {WorkloadKind::kRandom, WorkloadKind::kMultiRound}) {
    ServeOptions options;
    options.workload.kind = kind;
    options.workload.num_documents = 6;
    options.workload.documents_per_prompt = 3;
    options.workload.document_len = 40;
    options.workload.output_len = 5;
    options.workload.rounds = 2;
    options.num_prompts = 6;
    options.arrivals.request_rate = 500;
    const auto target = engine_target(*engine, Method::kLazy, "");
    Progress progress;
    const auto result = run_serve(options, *target, progress);
    ASSERT_TRUE(result.ok()) << result.status().message();
    EXPECT_EQ(result->metrics.completed, 6) << workload_name(kind);
    EXPECT_EQ(result->metrics.total_output_tokens, 30);
    for (const RequestRecord& record : result->records) EXPECT_EQ(record.itl_ms.size(), 4U);
  }
}

}  // namespace
}  // namespace anyslot::bench
