// The benchmark against servers that answer as vLLM and llama.cpp do.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "serve.h"
#include "support/temporary_folder.h"
#include "test_other_servers.h"

namespace anyslot::bench {
namespace {

using nlohmann::json;
using testing::HasSubstr;

struct Peer {
  const char* name;
  std::unique_ptr<OtherServer> (*make)();
  bool finishes_apart;   // the finish_reason comes after the last token
  const char* too_long;  // of its message for a prompt that it cannot take
  const char* broken;    // of its message when it gives up in an answer
  const char* model;     // that it serves
};

const Peer kPeers[] = {
    {"vllm", other_server_vllm, false, "maximum context length is 2000", "Internal server error",
     "vllm"},
    {"llama_cpp_2025", [] { return other_server_llama_cpp(LlamaCppBuild::kLate2025); }, true,
     "exceeds the available context size (2000 tokens)", "Compute error.", "llama.cpp"},
    {"llama_cpp_2026", [] { return other_server_llama_cpp(LlamaCppBuild::k2026); }, true,
     "exceeds the available context size (2000 tokens)", "Compute error.", "llama.cpp"}};

ServeOptions small_run() {
  ServeOptions options;
  options.workload.kind = WorkloadKind::kRandom;
  options.workload.num_documents = 4;
  options.workload.documents_per_prompt = 3;
  options.workload.document_len = 64;
  options.workload.question_len = 10;
  options.workload.output_len = 5;
  options.workload.order = DocumentOrder::kFixed;
  options.num_prompts = 8;
  options.max_concurrency = 1;
  return options;
}

class OtherServers : public ::testing::TestWithParam<Peer> {
 protected:
  Expected<ServeResult> serve(const ServeOptions& options,
                              const std::string& endpoint = "/v1/chat/completions") {
    HttpTargetOptions http;
    http.base_url = server_.url();
    http.endpoint = endpoint;
    http.documents_as_field = false;
    auto target = open_http_target(http);
    if (!target) return target.status();
    EXPECT_EQ((*target)->model_id(), GetParam().model);
    Progress progress;
    return run_serve(options, **target, progress);
  }
  /// One request with this question behind one document.
  Expected<ServeResult> ask(const std::string& question) {
    ServeOptions options;
    options.workload.kind = WorkloadKind::kRag;
    options.workload.dataset_path = folder_.write(
        "row.jsonl", json{{"documents", {"a text"}}, {"question", question}}.dump() + "\n");
    return serve(options);
  }

  std::unique_ptr<OtherServer> peer_ = GetParam().make();
  FakeServer server_{[this](const FakeRequest& request) { return peer_->answer(request); }};
  testing_support::TemporaryFolder folder_;
};

TEST_P(OtherServers, AreMeasuredThroughBothEndpoints) {
  for (const char* endpoint : {"/v1/chat/completions", "/v1/completions"}) {
    SCOPED_TRACE(endpoint);
    const OtherServerCounts before = peer_->counts();
    const auto result = serve(small_run(), endpoint);
    ASSERT_TRUE(result.ok()) << result.status().message();
    const ServeMetrics& metrics = result->metrics;
    EXPECT_EQ(metrics.completed, 8) << result->records.front().error;
    EXPECT_EQ(metrics.total_output_tokens, 8 * 5);
    const OtherServerCounts after = peer_->counts();
    const int64_t prompt_tokens = after.prompt_tokens - before.prompt_tokens;
    const int64_t cached_tokens = after.cached_tokens - before.cached_tokens;
    ASSERT_GT(cached_tokens, 0);
    EXPECT_EQ(metrics.total_input_tokens, prompt_tokens);
    EXPECT_EQ(metrics.cached_tokens, cached_tokens);
    ASSERT_TRUE(metrics.hit_ratio.has_value());
    EXPECT_DOUBLE_EQ(*metrics.hit_ratio,
                     static_cast<double>(cached_tokens) / static_cast<double>(prompt_tokens));
    EXPECT_FALSE(metrics.peak_kv.has_value());
    for (const RequestRecord& record : result->records) {
      EXPECT_EQ(record.text, " word word word word word");
      EXPECT_EQ(record.itl_ms.size(), GetParam().finishes_apart ? 5U : 4U);
      EXPECT_GT(record.ttft_ms, 0);
      EXPECT_TRUE(record.tpot_ms().has_value());
    }
  }
}

TEST_P(OtherServers, CountTheTokensOfDocuments) {
  ServeOptions options = small_run();
  options.num_prompts = 1;
  const auto result = serve(options);
  ASSERT_TRUE(result.ok()) << result.status().message();
  // Three documents of 64 tokens and a question of 10, and the titles: 3 words, 2 tokens each.
  EXPECT_EQ(result->metrics.total_input_tokens, 3 * (64 + 4 * 2) + 10);
}

TEST_P(OtherServers, GetDocumentsInThePromptAndNoFieldsOfOurs) {
  ASSERT_TRUE(serve(small_run()).ok());
  for (const std::string& text : server_.bodies()) {
    const json body = json::parse(text);
    for (const char* field : {"documents", "method", "cache_salt"})
      EXPECT_FALSE(body.contains(field)) << field;
    EXPECT_EQ(body["model"], GetParam().model);
    EXPECT_THAT(body["messages"][0]["content"].get<std::string>(), HasSubstr("Title: Document"));
  }
}

TEST_P(OtherServers, ReasonsForRefusalsAreKept) {
  std::string question = "why";
  for (int i = 0; i < 1000; ++i) question += " why";
  const auto result = ask(question);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->metrics.failures.at("refused"), 1);
  EXPECT_THAT(result->records.front().error, HasSubstr("400"));
  EXPECT_THAT(result->records.front().error, HasSubstr(GetParam().too_long));
}

TEST_P(OtherServers, ErrorsInAnAnswerAreKept) {
  const auto result = ask("do-break");
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->metrics.failures.at("error"), 1);
  EXPECT_EQ(result->records.front().error, GetParam().broken);
  EXPECT_EQ(result->records.front().text, " word word");
}

INSTANTIATE_TEST_SUITE_P(Peers, OtherServers, ::testing::ValuesIn(kPeers),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace anyslot::bench
