#include "openai_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "test_requests.h"

namespace anyslot::server {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

json chat_body() {
  return {{"model", "demo"}, {"messages", {{{"role", "user"}, {"content", "Hi"}}}}};
}
json completion_body() { return {{"model", "demo"}, {"prompt", "Hi"}}; }

AnswerRequest must_parse_chat(const json& body) { return must_parse(parse_chat_request, body); }
AnswerRequest must_parse_completion(const json& body) {
  return must_parse(parse_completion_request, body);
}

ApiError chat_error(const json& fields) {
  json body = chat_body();
  body.update(fields);
  return error_of_request(parse_chat_request, body);
}

ApiError completion_error(const json& fields) {
  json body = completion_body();
  body.update(fields);
  return error_of_request(parse_completion_request, body);
}

TEST(ChatRequest, HasTheDefaultsOfOpenAi) {
  const AnswerRequest request = must_parse_chat(chat_body());
  EXPECT_EQ(request.sampling.temperature, 1.0F);
  EXPECT_EQ(request.sampling.top_p, 1.0F);
  EXPECT_EQ(request.sampling.n, 1);
  EXPECT_EQ(request.sampling.max_tokens, 1000);
  EXPECT_FALSE(request.sampling.logprobs);
  EXPECT_FALSE(request.stream);
  const auto& messages = std::get<Conversation>(request.input).messages;
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_EQ(messages[0].role, ChatRole::kUser);
  EXPECT_EQ(messages[0].content, "Hi");
}

TEST(ChatRequest, RefusesLongIdsWithBothNumbers) {
  const json document = {{"text", "x"}, {"id", std::string(257, 'i')}};
  const ApiError error = chat_error({{"documents", {document}}});
  EXPECT_EQ(error.status, 400);
  EXPECT_EQ(error.param, "documents[0].id");
  EXPECT_THAT(error.message, HasSubstr("257 bytes; at most 256"));
  for (const char* id : {"a\nb", "\x1b[1m", "\x7f", "\xc2\x85"}) {
    const json odd = {{"text", "x"}, {"id", id}};
    EXPECT_THAT(chat_error({{"documents", {odd}}}).message, HasSubstr("control characters")) << id;
  }
}

TEST(ChatRequest, BoundsChoicesAndBiases) {
  const ApiError choices =
      chat_error({{"n", 2147483647}, {"max_tokens", 2147483647}, {"logprobs", true}});
  EXPECT_EQ(choices.param, "n");
  EXPECT_THAT(choices.message, HasSubstr("128"));
  json biases = json::object();
  for (int id = 0; id < 1025; ++id) biases[std::to_string(id)] = 1;
  const ApiError bias = chat_error({{"logit_bias", biases}});
  EXPECT_EQ(bias.code, "too_many_elements");
  EXPECT_THAT(bias.message, HasSubstr("at most 1024"));
  json body = chat_body();
  body["logit_bias"] = {{"7", 1e300}};
  EXPECT_EQ(must_parse_chat(body).sampling.logit_bias.at(7), std::numeric_limits<float>::max());
}

TEST(ChatRequest, BoundsTheLogprobsOfAnAnswerThatIsKept) {
  json fields = {{"n", 128}, {"logprobs", true}, {"top_logprobs", 20}, {"max_tokens", 100}};
  const ApiError error = chat_error(fields);
  EXPECT_EQ(error.param, "logprobs");
  EXPECT_THAT(error.message, HasSubstr("n (128) x max_tokens (100) x 21"));
  EXPECT_THAT(error.message, HasSubstr("are 268800; at most 262144"));
  fields["stream"] = true;
  EXPECT_EQ(chat_error(fields).status, 200);
  fields["stream"] = false;
  fields["n"] = 124;
  EXPECT_EQ(chat_error(fields).status, 200);
  EXPECT_EQ(completion_error({{"n", 128}, {"logprobs", 20}, {"max_tokens", 100}}).param,
            "logprobs");
}

TEST(ChatRequest, BoundsItsLists) {
  const auto message = json{{"role", "user"}, {"content", "Hi"}};
  EXPECT_EQ(chat_error({{"messages", json(4096, message)}}).status, 200);
  const ApiError many = chat_error({{"messages", json(4097, message)}});
  EXPECT_EQ(many.code, "too_many_elements");
  EXPECT_THAT(many.message, HasSubstr("4097 elements; at most 4096"));
  const json parts(4097, {{"type", "text"}, {"text", "x"}});
  EXPECT_EQ(chat_error({{"messages", {{{"role", "user"}, {"content", parts}}}}}).code,
            "too_many_elements");
  EXPECT_EQ(chat_error({{"stop", json(65, "x")}}).code, "too_many_elements");
  EXPECT_EQ(chat_error({{"stop_token_ids", json(1025, 1)}}).code, "too_many_elements");
}

TEST(ChatRequest, CountsTheDocumentsOfAllTurns) {
  const ApiError error = chat_error(
      {{"documents", {"a", "b"}},
       {"messages", {{{"role", "user"}, {"content", "Hi"}, {"documents", {"c", "d"}}}}}});
  EXPECT_EQ(error.code, "too_many_documents");
  EXPECT_THAT(error.message, HasSubstr("4 documents; at most 3 are allowed"));
}

TEST(ChatRequest, QuotesLittleOfWhatWasSent) {
  const std::string text(1 << 20, 'x');
  const json message = {{"role", text}, {"content", "Hi"}};
  const json part = {{"type", text}};
  for (const json& fields : {json{{"model", text}}, json{{text, 1}}, json{{"method", text}},
                             json{{"messages", {message}}}, json{{"max_tokens", text}},
                             json{{"messages", {{{"role", "user"}, {"content", {part}}}}}}}) {
    const ApiError error = chat_error(fields);
    EXPECT_GE(error.status, 400);
    EXPECT_LT(error.message.size(), 400U) << error.message.substr(0, 40);
    EXPECT_LT(error.param.size(), 200U);
  }
  EXPECT_EQ(excerpt("\xe2\x82\xac" + std::string(99, 'x') + "y").size(), 103U);
  EXPECT_EQ(excerpt(std::string(99, 'x') + "\xe2\x82\xac"), std::string(99, 'x') + "...");
}

TEST(ChatRequest, RefusesNumbersThatNoFloatCanBe) {
  const ApiError error = chat_error({{"temperature", 1e300}});
  EXPECT_EQ(error.param, "temperature");
  EXPECT_THAT(error.message, HasSubstr("is 1e+300"));
}

TEST(ChatRequest, FitsOnlyADefaultOfMaxTokens) {
  EXPECT_TRUE(must_parse_chat(chat_body()).fit_max_tokens);
  json body = chat_body();
  body["max_tokens"] = 5;
  EXPECT_FALSE(must_parse_chat(body).fit_max_tokens);
}

TEST(ChatRequest, DrawsASeedUnlessOneIsGiven) {
  EXPECT_NE(must_parse_chat(chat_body()).sampling.seed, must_parse_chat(chat_body()).sampling.seed);
  json body = chat_body();
  body["seed"] = 7;
  EXPECT_EQ(must_parse_chat(body).sampling.seed, 7U);
  body["seed"] = -1;
  EXPECT_EQ(must_parse_chat(body).sampling.seed, ~uint64_t{0});
}

TEST(ChatRequest, ReadsEveryParameterOfSampling) {
  json body = chat_body();
  body.update(json::parse(R"({"temperature": 0.5, "top_p": 0.9, "top_k": 40, "min_p": 0.1,
      "repetition_penalty": 1.1, "presence_penalty": 0.2, "frequency_penalty": -0.3,
      "logit_bias": {"5": -100, "7": 2.5}, "seed": 3, "n": 2, "max_completion_tokens": 20,
      "min_tokens": 4, "stop_token_ids": [9], "stop": ["x", "yz"],
      "include_stop_str_in_output": true, "ignore_eos": true, "logprobs": true,
      "top_logprobs": 5, "method": "mepic", "cache_salt": "s", "stream": true,
      "stream_options": {"include_usage": true}})"));
  const AnswerRequest request = must_parse_chat(body);
  const SamplingParams& sampling = request.sampling;
  EXPECT_EQ(sampling.temperature, 0.5F);
  EXPECT_EQ(sampling.top_p, 0.9F);
  EXPECT_EQ(sampling.top_k, 40);
  EXPECT_EQ(sampling.min_p, 0.1F);
  EXPECT_EQ(sampling.repetition_penalty, 1.1F);
  EXPECT_EQ(sampling.presence_penalty, 0.2F);
  EXPECT_EQ(sampling.frequency_penalty, -0.3F);
  EXPECT_THAT(sampling.logit_bias, ElementsAre(std::pair(5, -100.0F), std::pair(7, 2.5F)));
  EXPECT_EQ(sampling.seed, 3U);
  EXPECT_EQ(sampling.n, 2);
  EXPECT_EQ(sampling.max_tokens, 20);
  EXPECT_EQ(sampling.min_tokens, 4);
  EXPECT_THAT(sampling.stop_token_ids, ElementsAre(9));
  EXPECT_THAT(sampling.stop, ElementsAre("x", "yz"));
  EXPECT_TRUE(sampling.include_stop_in_output);
  EXPECT_TRUE(sampling.ignore_eos);
  EXPECT_TRUE(sampling.logprobs);
  EXPECT_EQ(sampling.top_logprobs, 5);
  EXPECT_EQ(request.method, Method::kMepic);
  EXPECT_EQ(request.cache_salt, "s");
  EXPECT_TRUE(request.stream);
  EXPECT_TRUE(request.include_usage);
}

TEST(ChatRequest, ReadsDocumentsOfTheRequestAndOfMessages) {
  const AnswerRequest request = must_parse_chat(json::parse(R"({"model": "demo",
      "documents": ["bare", {"id": "a", "title": "T", "text": "x", "pin": true, "ttl": 60}],
      "messages": [{"role": "developer", "content": "be brief"},
                   {"role": "user", "content": [{"type": "text", "text": "q"},
                                                {"type": "text", "text": "1"}]},
                   {"role": "assistant", "content": "a1", "tool_calls": [], "refusal": null},
                   {"role": "user", "content": "q2", "documents": ["late"]}]})"));
  ASSERT_EQ(request.documents.size(), 3U);
  EXPECT_EQ(request.num_leading, 2U);
  EXPECT_EQ(request.documents[0].document.text, "bare");
  EXPECT_FALSE(request.documents[0].document.title.has_value());
  EXPECT_EQ(request.documents[1].document.title, "T");
  EXPECT_EQ(request.documents[1].document.id, "a");
  EXPECT_TRUE(request.documents[1].pin);
  EXPECT_EQ(request.documents[1].ttl_seconds, 60);
  EXPECT_EQ(request.documents[2].document.text, "late");
  const auto& messages = std::get<Conversation>(request.input).messages;
  ASSERT_EQ(messages.size(), 4U);
  EXPECT_EQ(messages[0].role, ChatRole::kSystem);
  EXPECT_EQ(messages[1].content, "q1");
  EXPECT_EQ(messages[3].documents.at(0).text, "late");
}

TEST(ChatRequest, NamesUnsupportedAndUnknownFields) {
  const std::vector<std::pair<std::string, json>> fields = {
      {"tools", json::parse(R"([{"type": "function"}])")},
      {"tool_choice", "auto"},
      {"response_format", {{"type", "json_object"}}},
      {"prompt_logprobs", 1},
      {"audio", json::object()},
      {"store", true},
      {"echo", true},
      {"reasoning_effort", "low"},
      {"temprature", 1}};
  for (const auto& [name, value] : fields) {
    const ApiError error = chat_error({{name, value}});
    EXPECT_EQ(error.status, 400) << error.message;
    EXPECT_EQ(error.param, name);
    EXPECT_THAT(error.message, HasSubstr(name));
  }
}

TEST(ChatRequest, AcceptsFieldsThatAskForWhatHappensAnyway) {
  EXPECT_EQ(chat_error({{"tools", json::array()},
                        {"tool_choice", "none"},
                        {"response_format", {{"type", "text"}}},
                        {"store", false},
                        {"audio", nullptr},
                        {"user", "u1"}})
                .status,
            200);
}

TEST(ChatRequest, NamesWhatIsWrong) {
  const std::vector<std::pair<json, std::string>> cases = {
      {{{"messages", json::array()}}, "messages"},
      {{{"messages", "Hi"}}, "messages"},
      {json::parse(R"({"messages": [{"role": "tool", "content": "x"}]})"), "messages[0].role"},
      {json::parse(R"({"messages": [{"role": "user"}]})"), "messages[0].content"},
      {json::parse(R"({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]})"),
       "messages[0].content[0].type"},
      {json::parse(R"({"messages": [{"role": "user", "content": "x", "name": "y"}]})"),
       "messages[0].name"},
      {json::parse(R"({"documents": [{"title": "T"}]})"), "documents[0].text"},
      {json::parse(R"({"documents": ["a", ""]})"), "documents[1]"},
      {json::parse(R"({"documents": [{"text": "a", "score": 1}]})"), "documents[0].score"},
      {json::parse(R"({"documents": ["a", "b", "c", "d"]})"), "documents"},
      {json::parse(R"({"max_tokens": 0})"), "max_tokens"},
      {json::parse(R"({"max_tokens": 99999999999})"), "max_tokens"},
      {json::parse(R"({"n": 1.5})"), "n"},
      {json::parse(R"({"temperature": "hot"})"), "temperature"},
      {json::parse(R"({"stop": [1]})"), "stop"},
      {json::parse(R"({"logit_bias": {"a": 1}})"), "logit_bias"},
      {json::parse(R"({"top_logprobs": 2})"), "top_logprobs"},
      {json::parse(R"({"stream_options": {"include_usage": true}})"), "stream_options"},
      {json::parse(R"({"stream": true, "stream_options": {"x": 1}})"), "stream_options.x"},
      {json::parse(R"({"method": "magic"})"), "method"},
      {json::parse(R"({"seed": "s"})"), "seed"}};
  for (const auto& [fields, param] : cases) {
    const ApiError error = chat_error(fields);
    EXPECT_EQ(error.status, 400) << error.message;
    EXPECT_EQ(error.param, param) << error.message;
  }
}

TEST(ChatRequest, KnowsNoOtherModel) {
  const ApiError error = chat_error({{"model", "gpt-4"}});
  EXPECT_EQ(error.status, 404);
  EXPECT_EQ(error.code, "model_not_found");
  EXPECT_THAT(error.message, HasSubstr("demo"));
}

TEST(CompletionRequest, TakesTextAndTokens) {
  const auto content = [](const json& prompt) {
    json body = completion_body();
    body["prompt"] = prompt;
    return std::get<Prompt>(must_parse_completion(body).input).content;
  };
  EXPECT_EQ(std::get<std::string>(content("Hi")), "Hi");
  EXPECT_EQ(std::get<std::string>(content({"Hi"})), "Hi");
  EXPECT_THAT(std::get<std::vector<int32_t>>(content({1, 2})), ElementsAre(1, 2));
  EXPECT_THAT(std::get<std::vector<int32_t>>(content(json::array({json::array({1, 2})}))),
              ElementsAre(1, 2));
}

TEST(CompletionRequest, RefusesOtherPrompts) {
  for (const char* prompt : {"\"\"", "[]", "[\"a\", \"b\"]", "[[1], [2]]", "[-1]", "[1.5]", "7",
                             "[4294967296]", "[[]]"}) {
    const ApiError error = completion_error({{"prompt", json::parse(prompt)}});
    EXPECT_EQ(error.param, "prompt") << prompt << ": " << error.message;
  }
  EXPECT_EQ(completion_error({{"prompt", nullptr}}).param, "prompt");
}

TEST(CompletionRequest, HasItsOwnDefaultsAndLogprobs) {
  EXPECT_EQ(must_parse_completion(completion_body()).sampling.max_tokens, 16);
  json body = completion_body();
  body["logprobs"] = 0;
  EXPECT_TRUE(must_parse_completion(body).sampling.logprobs);
  body["logprobs"] = 3;
  EXPECT_EQ(must_parse_completion(body).sampling.top_logprobs, 3);
  EXPECT_EQ(completion_error({{"best_of", 1}}).status, 200);
  EXPECT_EQ(completion_error({{"best_of", 3}}).param, "best_of");
  EXPECT_EQ(completion_error({{"suffix", "x"}}).param, "suffix");
  EXPECT_EQ(completion_error({{"messages", json::array()}}).param, "messages");
}

}  // namespace
}  // namespace anyslot::server
