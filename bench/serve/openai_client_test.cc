#include "openai_client.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace anyslot::bench {
namespace {

using nlohmann::json;

WorkloadRequest small_request() {
  WorkloadRequest request;
  request.documents = {{"Masa", "The river.", "a", {}}, {std::nullopt, "Bare.\n", "", {}}};
  request.messages = {
      {ChatRole::kUser, "q1", {}}, {ChatRole::kAssistant, "a1", {}}, {ChatRole::kUser, "q2", {}}};
  request.max_tokens = 7;
  return request;
}

TEST(EventParser, FindsEventsHoweverTheBytesAreCut) {
  const std::string stream =
      ": ping\r\n\r\ndata: {\"a\":1}\r\n\r\ndata:two\ndata: lines\n\ndata: [DONE]\n\n";
  for (size_t cut = 0; cut <= stream.size(); ++cut) {
    EventParser parser;
    std::vector<std::string> events = parser.feed(stream.substr(0, cut));
    for (std::string& event : parser.feed(stream.substr(cut))) events.push_back(std::move(event));
    EXPECT_EQ(events, (std::vector<std::string>{"{\"a\":1}", "two\nlines", "[DONE]"})) << cut;
  }
}

TEST(ParseChunk, TellsTokensFromTheRestOfAStream) {
  // The role alone is no token: servers send it before the first one.
  EXPECT_FALSE(
      parse_chunk(R"({"choices": [{"delta": {"role": "assistant", "content": ""}}]})").is_output);
  const AnswerChunk token = parse_chunk(R"({"choices": [{"delta": {"content": "x"}}]})");
  EXPECT_TRUE(token.is_output);
  EXPECT_EQ(token.text, "x");
  EXPECT_TRUE(parse_chunk(R"({"choices": [{"text": "", "finish_reason": null}]})").is_output);
  const AnswerChunk last =
      parse_chunk(R"({"choices": [{"delta": {}, "finish_reason": "stop"}], "usage": null})");
  EXPECT_TRUE(last.is_output);
  EXPECT_TRUE(last.finished);
  const AnswerChunk usage = parse_chunk(
      R"({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2,
          "prompt_tokens_details": {"cached_tokens": 3}}})");
  EXPECT_FALSE(usage.is_output);
  EXPECT_EQ(usage.prompt_tokens, 5);
  EXPECT_EQ(usage.cached_tokens, 3);
  EXPECT_EQ(usage.output_tokens, 2);
}

TEST(ParseChunk, TakesErrorsAndNonsenseForErrors) {
  EXPECT_EQ(parse_chunk(R"({"error": {"message": "gone"}})").error, "gone");
  EXPECT_NE(parse_chunk("half a chu").error, "");
  EXPECT_NE(parse_chunk("[1]").error, "");
}

TEST(RequestBody, GivesDocumentsAsAFieldOrInThePrompt) {
  HttpTargetOptions options;
  options.model = "m";
  options.method = Method::kBlock;
  options.cache_salt = "s";
  const json field = json::parse(request_body(options, small_request()));
  EXPECT_EQ(
      field["documents"],
      json::parse(R"([{"text": "The river.", "title": "Masa", "id": "a"}, {"text": "Bare.\n"}])"));
  EXPECT_EQ(field["messages"][0]["content"], "q1");
  EXPECT_EQ(field["method"], "block");
  EXPECT_EQ(field["max_tokens"], 7);
  EXPECT_EQ(field["temperature"], 0);
  EXPECT_FALSE(field.contains("ignore_eos"));

  options.documents_as_field = false;
  const json prompt = json::parse(request_body(options, small_request()));
  EXPECT_FALSE(prompt.contains("documents"));
  EXPECT_EQ(prompt["messages"][0]["content"], "- Title: Masa\nThe river.\nBare.\n\nq1");
  EXPECT_EQ(prompt["messages"][2]["content"], "q2");
  options.endpoint = "/v1/completions";
  EXPECT_EQ(json::parse(request_body(options, small_request()))["prompt"],
            "- Title: Masa\nThe river.\nBare.\n\nq1\na1\nq2");
}

TEST(MetricSum, AddsTheLinesOfOneMetricByLabel) {
  const std::string text =
      "# TYPE t counter\nt{kind=\"a\",source=\"pool\"} 3\nt{kind=\"b\",source=\"pool\"} 1e2\n"
      "t{kind=\"a\",source=\"computed\"} 7\nt_more 9\nplain 4\n";
  EXPECT_EQ(metric_sum(text, "t", ""), 110);
  EXPECT_EQ(metric_sum(text, "t", "source=\"pool\""), 103);
  EXPECT_EQ(metric_sum(text, "plain", ""), 4);
  EXPECT_FALSE(metric_sum(text, "none", "").has_value());
}

}  // namespace
}  // namespace anyslot::bench
