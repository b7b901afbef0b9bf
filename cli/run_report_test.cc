#include "run_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace anyslot::cli {
namespace {

using nlohmann::json;

Completion completion_of(std::string text, double ttft_ms) {
  Completion completion;
  completion.text = std::move(text);
  completion.token_ids = {11, 12};
  completion.finish_reason = FinishReason::kLength;
  completion.usage.prompt_tokens = 100;
  completion.usage.completion_tokens = 2;
  completion.usage.cached_tokens = 60;
  completion.usage.documents = {{0, "", 40, 40, DocumentSource::kPool},
                                {1, "d", 30, 0, DocumentSource::kJoined}};
  completion.usage.ttft_ms = ttft_ms;
  completion.usage.total_ms = ttft_ms + 0.25;
  return completion;
}

TEST(RowOutput, HasTheNamedFields) {
  InputRow row;
  row.id = "x";
  const std::string line = row_output(row, completion_of("Masa", 1.5), Method::kLazy);
  EXPECT_EQ(
      line,
      R"({"id":"x","text":"Masa","token_ids":[11,12],"finish_reason":"length","method":"lazy",)"
      R"("usage":{"prompt_tokens":100,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":60}},)"
      R"("documents":[{"index":0,"id":null,"tokens":40,"cached_tokens":40,"source":"pool"},)"
      R"({"index":1,"id":"d","tokens":30,"cached_tokens":0,"source":"joined"}],)"
      R"("timing":{"ttft_ms":1.5,"total_ms":1.75}})"
      "\n");
}

TEST(RowOutput, StaysOneLineOfValidJson) {
  InputRow row;
  row.id = 3;
  const std::string line = row_output(row, completion_of("two\nlines \xff", 1), Method::kFull);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  EXPECT_EQ(json::parse(line).at("text"), "two\nlines \xef\xbf\xbd");
}

TEST(RunSummary, AddsUpRows) {
  InputRow with_answer;
  with_answer.answers = {"Masa"};
  RunSummary summary;
  summary.add(with_answer, completion_of("masa", 10));
  summary.add(with_answer, completion_of("The Masa river", 20));
  summary.add(InputRow(), completion_of("anything", 40));
  const json object = json::parse(summary.text(2, 1234));
  EXPECT_EQ(object.at("requests"), 3);
  EXPECT_DOUBLE_EQ(object.at("exact_match"), 0.5);
  EXPECT_DOUBLE_EQ(object.at("contains_match"), 1);
  EXPECT_NEAR(object.at("f1"), (1 + 2.0 / 3) / 2, 1e-6);
  EXPECT_DOUBLE_EQ(object.at("ttft_ms").at("median"), 20);
  EXPECT_DOUBLE_EQ(object.at("ttft_ms").at("p95"), 38);
  EXPECT_DOUBLE_EQ(object.at("cached_token_ratio"), 0.6);
  EXPECT_EQ(object.at("kv_tokens_read"), 1234);
  EXPECT_DOUBLE_EQ(object.at("prompt_tokens_per_second"), 150);
  EXPECT_DOUBLE_EQ(object.at("output_tokens_per_second"), 3);
}

TEST(RunSummary, HasNoScoresWithoutAnswers) {
  RunSummary summary;
  summary.add(InputRow(), completion_of("anything", 1));
  const json object = json::parse(summary.text(1, 0));
  EXPECT_TRUE(object.at("exact_match").is_null());
  EXPECT_TRUE(object.at("contains_match").is_null());
  EXPECT_TRUE(object.at("f1").is_null());
}

}  // namespace
}  // namespace anyslot::cli
