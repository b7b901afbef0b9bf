#include "openai_response.h"

#include <gtest/gtest.h>

namespace anyslot::server {
namespace {

using nlohmann::json;

std::string letter(int32_t id) { return std::string(1, static_cast<char>('a' + id)); }

Event token_event(int32_t id, std::optional<FinishReason> finish = std::nullopt) {
  Event event;
  event.token_ids = {id};
  event.text = letter(id);
  event.logprobs = {{{id, -0.5F}, {{id, -0.5F}, {id + 1, -1.5F}}}};
  event.finish_reason = finish;
  return event;
}

json whole_of(const ChoiceBuilder& choice) {
  std::string text;
  choice.append_whole(text, letter);
  return json::parse(text);
}

Usage some_usage() {
  Usage usage;
  usage.prompt_tokens = 10;
  usage.completion_tokens = 2;
  usage.cached_tokens = 6;
  usage.documents = {{0, "a", 6, 6, DocumentSource::kPool},
                     {1, "", 2, 0, DocumentSource::kComputed}};
  return usage;
}

TEST(OpenAiResponse, TellsUsageWithDocuments) {
  EXPECT_EQ(usage_json(some_usage()), json::parse(R"({
      "prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12,
      "prompt_tokens_details": {"cached_tokens": 6},
      "documents": [
        {"index": 0, "id": "a", "tokens": 6, "cached_tokens": 6, "source": "pool"},
        {"index": 1, "id": null, "tokens": 2, "cached_tokens": 0, "source": "computed"}]})"));
}

TEST(OpenAiResponse, PutsAChatTogether) {
  ChoiceBuilder choice(Api::kChat, 1);
  choice.add(token_event(0));
  choice.add(token_event(1, FinishReason::kLength));
  const json whole = whole_of(choice);
  EXPECT_EQ(whole["index"], 1);
  EXPECT_EQ(whole["message"]["role"], "assistant");
  EXPECT_EQ(whole["message"]["content"], "ab");
  EXPECT_EQ(whole["finish_reason"], "length");
  ASSERT_EQ(whole["logprobs"]["content"].size(), 2U);
  EXPECT_EQ(whole["logprobs"]["content"][1], json::parse(R"({"token": "b", "logprob": -0.5,
      "bytes": [98], "top_logprobs": [{"token": "b", "logprob": -0.5, "bytes": [98]},
                                      {"token": "c", "logprob": -1.5, "bytes": [99]}]})"));
}

TEST(OpenAiResponse, PutsACompletionTogether) {
  ChoiceBuilder choice(Api::kCompletions, 0);
  choice.add(token_event(0));
  Event last = token_event(1, FinishReason::kStop);
  last.stop_reason = StopReason(std::string("b"));
  choice.add(last);
  EXPECT_EQ(whole_of(choice), json::parse(R"({"index": 0, "text": "ab", "finish_reason": "stop",
      "stop_reason": "b", "logprobs": {"tokens": ["a", "b"], "token_logprobs": [-0.5, -0.5],
      "top_logprobs": [{"a": -0.5, "b": -1.5}, {"b": -0.5, "c": -1.5}],
      "text_offset": [0, 1]}})"));
}

TEST(OpenAiResponse, StreamsDeltas) {
  ChoiceBuilder choice(Api::kChat, 0);
  Event event = token_event(0);
  event.logprobs.clear();
  EXPECT_EQ(choice.delta(event, letter), json::parse(R"({"index": 0, "delta": {"content": "a"},
      "logprobs": null, "finish_reason": null})"));
  Event last;
  last.finish_reason = FinishReason::kStop;
  EXPECT_EQ(choice.delta(last, letter), json::parse(R"({"index": 0, "delta": {},
      "logprobs": null, "finish_reason": "stop", "stop_reason": null})"));
  EXPECT_EQ(role_delta(2)["delta"], json::parse(R"({"role": "assistant", "content": ""})"));
}

TEST(OpenAiResponse, OffsetsOfAStreamedCompletionGoOn) {
  ChoiceBuilder choice(Api::kCompletions, 0);
  const auto euro = [](int32_t) { return std::string("\xe2\x82\xac"); };
  EXPECT_EQ(choice.delta(token_event(0), euro)["logprobs"]["text_offset"], json({0}));
  EXPECT_EQ(choice.delta(token_event(0), euro)["logprobs"]["text_offset"], json({1}));
}

TEST(OpenAiResponse, WritesImpossibleTokensAsNumbers) {
  ChoiceBuilder choice(Api::kChat, 0);
  Event event = token_event(0);
  event.logprobs[0].top[1].logprob = -std::numeric_limits<float>::infinity();
  const json delta = choice.delta(event, letter);
  EXPECT_EQ(delta["logprobs"]["content"][0]["top_logprobs"][1]["logprob"], -9999.0);
}

TEST(OpenAiResponse, NamesTheObject) {
  AnswerHead head{Api::kCompletions, "cmpl-1", 5, "demo"};
  const json answer = json::parse(answer_text(head, {}, some_usage(), letter));
  EXPECT_EQ(answer["choices"], json::array());
  const std::vector<ChoiceBuilder> two = {{head.api, 0}, {head.api, 1}};
  const json choices = json::parse(answer_text(head, two, some_usage(), letter))["choices"];
  ASSERT_EQ(choices.size(), 2U);
  EXPECT_EQ(choices[1]["index"], 1);
  EXPECT_TRUE(choices[1]["logprobs"].is_null());
  EXPECT_EQ(answer["object"], "text_completion");
  EXPECT_EQ(answer["id"], "cmpl-1");
  EXPECT_EQ(answer["created"], 5);
  EXPECT_EQ(answer["model"], "demo");
  head.api = Api::kChat;
  const json chunk = json::parse(chunk_text(head, json::array(), std::nullopt));
  EXPECT_EQ(chunk["object"], "chat.completion.chunk");
  EXPECT_FALSE(chunk.contains("usage"));
  EXPECT_TRUE(json::parse(chunk_text(head, json::array(), json()))["usage"].is_null());
}

TEST(OpenAiResponse, GivesEachAnswerAnId) {
  EXPECT_NE(new_answer_id("cmpl-"), new_answer_id("cmpl-"));
  EXPECT_EQ(new_answer_id("chatcmpl-").substr(0, 9), "chatcmpl-");
}

}  // namespace
}  // namespace anyslot::server
