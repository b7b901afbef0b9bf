// Every way of asking, on the bundled model: the same answer, in the words of each API.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "test_server.h"

namespace anyslot::server {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::string kTitle = "Lornaburg";
const std::string kText = "Lornaburg is a city in Japan. The river Masa flows through it.";
const std::string kQuestion = "Which river flows through Lornaburg?";

class ApisTest : public SharedServerTest<ApisTest> {
 protected:
  void TearDown() override { server->expect_idle(); }

  static json with(json body, const json& more) {
    body.update({{"model", server->model()}, {"max_tokens", 16}, {"temperature", 0}});
    body.update(more);
    return body;
  }
  static json openai(const json& more = json::object()) {
    return with({{"messages", {{{"role", "user"}, {"content", kQuestion}}}},
                 {"documents", {{{"title", kTitle}, {"text", kText}}}}},
                more);
  }
  static json anthropic(const json& more = json::object()) {
    const json document = {
        {"type", "document"}, {"title", kTitle}, {"source", {{"type", "text"}, {"data", kText}}}};
    const json question = {{"type", "text"}, {"text", kQuestion}};
    return with({{"messages", {{{"role", "user"}, {"content", {document, question}}}}}}, more);
  }
  static json cohere(const json& more = json::object()) {
    return with({{"messages", {{{"role", "user"}, {"content", kQuestion}}}},
                 {"documents", {{{"data", {{"title", kTitle}, {"text", kText}}}}}}},
                more);
  }

  /// The answer of OpenAI's API, which server_test holds against the engine.
  static std::string expected(const json& more = json::object()) {
    const ClientReply reply = server->connect().post("/v1/chat/completions", openai(more));
    return reply.json()["choices"][0]["message"]["content"];
  }

  static json post(const std::string& path, const json& body) {
    const ClientReply reply = server->connect().post(path, body);
    EXPECT_EQ(reply.status, 200) << reply.body;
    return reply.json();
  }

  /// The events of a stream; each is named as its type.
  static std::vector<json> stream(const std::string& path, json body) {
    body["stream"] = true;
    TestClient client = server->connect();
    const ClientReply head = client.open_stream(path, body);
    EXPECT_EQ(head.status, 200);
    std::vector<json> events;
    while (const auto event = client.next_event()) {
      events.push_back(json::parse(*event));
      EXPECT_EQ(events.back().value("type", ""), client.event_name()) << *event;
    }
    return events;
  }

  static std::vector<std::string> types_of(const std::vector<json>& events) {
    std::vector<std::string> types;
    for (const json& event : events) {
      const std::string type = event["type"];
      const bool is_delta = type.ends_with("_delta") || type.ends_with("-delta");
      if (is_delta && types.back() == type) continue;
      types.push_back(type);
    }
    return types;
  }
};

int64_t all_input(const json& usage) {
  return usage["input_tokens"].get<int64_t>() +
         usage["cache_creation_input_tokens"].get<int64_t>() +
         usage["cache_read_input_tokens"].get<int64_t>();
}

TEST_F(ApisTest, AnthropicAnswersFromDocuments) {
  const json salt = {{"cache_salt", "anthropic"}};
  const json cold = post("/v1/messages", anthropic(salt));
  EXPECT_EQ(cold["type"], "message");
  EXPECT_EQ(cold["role"], "assistant");
  EXPECT_EQ(cold["model"], server->model());
  EXPECT_THAT(cold["id"].get<std::string>(), StartsWith("msg_"));
  EXPECT_EQ(cold["content"], json::array({{{"type", "text"}, {"text", expected()}}}));
  EXPECT_THAT(expected(), HasSubstr("Masa"));
  EXPECT_EQ(cold["stop_reason"], "end_turn");
  EXPECT_TRUE(cold["stop_sequence"].is_null());
  EXPECT_EQ(cold["usage"]["cache_read_input_tokens"], 0);
  EXPECT_GT(cold["usage"]["cache_creation_input_tokens"], 0);
  EXPECT_GT(cold["usage"]["input_tokens"], 0);

  const json warm = post("/v1/messages", anthropic(salt));
  EXPECT_EQ(warm["content"], cold["content"]);
  EXPECT_EQ(warm["usage"]["cache_creation_input_tokens"], 0);
  EXPECT_GE(warm["usage"]["cache_read_input_tokens"], cold["usage"]["cache_creation_input_tokens"]);
  EXPECT_EQ(all_input(warm["usage"]), all_input(cold["usage"]));
  EXPECT_EQ(warm["usage"]["documents"][0]["source"], "pool");
  const json prompt = post("/v1/chat/completions", openai())["usage"]["prompt_tokens"];
  EXPECT_EQ(all_input(warm["usage"]), prompt) << "the same prompt as OpenAI's";
}

TEST_F(ApisTest, AnthropicStreamsTheSame) {
  const std::vector<json> events = stream("/v1/messages", anthropic());
  EXPECT_EQ(types_of(events),
            (std::vector<std::string>{"message_start", "content_block_start", "content_block_delta",
                                      "content_block_stop", "message_delta", "message_stop"}));
  std::string text;
  for (const json& event : events) {
    if (event["type"] == "content_block_delta") text += event["delta"]["text"];
  }
  EXPECT_EQ(text, expected());
  const json& message = events.front()["message"];
  EXPECT_EQ(message["content"], json::array());
  EXPECT_TRUE(message["stop_reason"].is_null());
  const json& delta = events[events.size() - 2];
  EXPECT_EQ(delta["delta"]["stop_reason"], "end_turn");
  EXPECT_EQ(all_input(message["usage"]), all_input(delta["usage"])) << "known from the start";
  EXPECT_GT(delta["usage"]["output_tokens"], 0);
}

TEST_F(ApisTest, AnthropicTellsWhatStoppedTheAnswer) {
  EXPECT_EQ(post("/v1/messages", anthropic({{"max_tokens", 1}}))["stop_reason"], "max_tokens");
  const json stopped = post("/v1/messages", anthropic({{"stop_sequences", {"asa"}}}));
  EXPECT_EQ(stopped["stop_reason"], "stop_sequence");
  EXPECT_EQ(stopped["stop_sequence"], "asa");
}

TEST_F(ApisTest, AnthropicHoldsDocumentsAndOthersHaveRoomBesideThem) {
  json body = anthropic({{"cache_salt", "holds"}});
  body["cache_control"] = {{"type", "ephemeral"}, {"ttl", "1h"}};
  post("/v1/messages", body);
  TestClient client = server->connect();
  const json listed = client.get("/v1/documents?cache_salt=holds").json()["data"];
  ASSERT_EQ(listed.size(), 1U) << listed.dump(1);
  EXPECT_EQ(listed[0]["pinned"], true);
  const std::string key = listed[0]["key"];
  EXPECT_EQ(post("/v1/messages", anthropic({{"max_tokens", 1'000'000}}))["stop_reason"], "end_turn")
      << "the limit is cut to what is left";
  body["method"] = "full";
  EXPECT_EQ(post("/v1/messages", body)["stop_reason"], "end_turn") << "nothing to hold there";
  EXPECT_EQ(client.post("/v1/documents/" + key + "/unpin?cache_salt=holds", nullptr).status, 400)
      << "it takes no body";
  EXPECT_EQ(
      client.request("POST", "/v1/documents/" + key + "/unpin?cache_salt=holds", "", {}).status,
      200);
  EXPECT_EQ(server->metric("anyslot_pinned_blocks"), 0);
}

TEST_F(ApisTest, AnthropicCountsTokens) {
  json body = anthropic();
  const int64_t expected_tokens = all_input(post("/v1/messages", body)["usage"]);
  body.erase("max_tokens");
  body.erase("temperature");
  EXPECT_EQ(post("/v1/messages/count_tokens", body)["input_tokens"], expected_tokens);
  const ClientReply wrong = server->connect().post("/v1/messages/count_tokens", json::object());
  EXPECT_EQ(wrong.status, 400);
  EXPECT_EQ(wrong.json()["type"], "error");
}

TEST_F(ApisTest, AnthropicNamesMessagesAsTheClientCountsThem) {
  const json messages = {{{"role", "assistant"}, {"content", "a"}},
                         {{"role", "user"}, {"content", "b"}}};
  const ClientReply reply = server->connect().post(
      "/v1/messages", anthropic({{"system", "Be brief."}, {"messages", messages}}));
  EXPECT_EQ(reply.status, 400);
  EXPECT_THAT(reply.json()["error"]["message"].get<std::string>(), StartsWith("messages[0]"));
}

TEST_F(ApisTest, CohereAnswersFromDocuments) {
  const json answer = post("/v2/chat", cohere({{"p", 1}}));
  EXPECT_EQ(answer["message"]["role"], "assistant");
  EXPECT_EQ(answer["message"]["content"], json::array({{{"type", "text"}, {"text", expected()}}}));
  EXPECT_EQ(answer["finish_reason"], "COMPLETE");
  EXPECT_GT(answer["usage"]["tokens"]["input_tokens"], 0);
  EXPECT_GT(answer["usage"]["tokens"]["output_tokens"], 0);
  EXPECT_EQ(answer["usage"]["documents"].size(), 1U);
  EXPECT_EQ(post("/v2/chat", cohere({{"max_tokens", 1}}))["finish_reason"], "MAX_TOKENS");
  EXPECT_EQ(post("/v2/chat", cohere({{"stop_sequences", {"asa"}}}))["finish_reason"],
            "STOP_SEQUENCE");
}

TEST_F(ApisTest, CohereStreamsTheSame) {
  const std::vector<json> events = stream("/v2/chat", cohere());
  EXPECT_EQ(types_of(events),
            (std::vector<std::string>{"message-start", "content-start", "content-delta",
                                      "content-end", "message-end"}));
  std::string text;
  for (const json& event : events) {
    if (event["type"] == "content-delta") text += event["delta"]["message"]["content"]["text"];
  }
  EXPECT_EQ(text, expected());
  EXPECT_EQ(events.back()["delta"]["finish_reason"], "COMPLETE");
  EXPECT_EQ(events.back()["id"], events.front()["id"]);
}

TEST_F(ApisTest, BlocksAreEncodedAloneAndTheLastSeesAll) {
  const json blocks = {kText + "\n", "Fenholm is a city in Norway.\n", "The river"};
  const json body = {{"blocks", blocks}, {"max_tokens", 8}};
  const json answer = post("/generate", body);
  EXPECT_EQ(answer["ret"], 0);
  EXPECT_EQ(answer["message"], "");
  const json same = post("/v1/completions", {{"model", server->model()},
                                             {"documents", {blocks[0], blocks[1]}},
                                             {"prompt", blocks[2]},
                                             {"temperature", 0},
                                             {"max_tokens", 8}});
  EXPECT_EQ(answer["generated"], same["choices"][0]["text"]);
  EXPECT_EQ(answer["usage"]["prompt_tokens"], same["usage"]["prompt_tokens"]);
  EXPECT_EQ(same["usage"]["documents"][1]["source"], "pool") << "the blocks are documents";

  std::string text;
  for (const json& event : stream("/generate", body)) text += event["generated"];
  EXPECT_EQ(text, answer["generated"].get<std::string>());
}

TEST_F(ApisTest, ErrorsHaveTheShapeOfTheApi) {
  TestClient client = server->connect();
  const auto error_at = [&](const std::string& path, const json& body, int status) {
    const ClientReply reply = client.post(path, body);
    EXPECT_EQ(reply.status, status) << path << ": " << reply.body;
    return reply.json();
  };
  const json wrong_model = {{"model", "other"}};
  const json anthropic_error = error_at("/v1/messages", anthropic(wrong_model), 404);
  EXPECT_EQ(anthropic_error["type"], "error");
  EXPECT_EQ(anthropic_error["error"]["type"], "not_found_error");
  EXPECT_THAT(anthropic_error["error"]["message"].get<std::string>(), HasSubstr("\"other\""));

  const json cohere_error = error_at("/v2/chat", cohere(wrong_model), 404);
  EXPECT_THAT(cohere_error["message"].get<std::string>(), HasSubstr("\"other\""));

  const json blocks_error = error_at("/generate", {{"blocks", 1}}, 400);
  EXPECT_EQ(blocks_error["ret"], 1);
  EXPECT_THAT(blocks_error["message"].get<std::string>(), HasSubstr("blocks"));

  EXPECT_EQ(error_at("/v1/chat/completions", openai(wrong_model), 404)["error"]["param"], "model");
}

TEST_F(ApisTest, ErrorsBeforeTheBodyHaveItToo) {
  TestClient client = server->connect();
  const ClientReply get = client.get("/v1/messages");
  EXPECT_EQ(get.status, 405);
  EXPECT_EQ(get.json()["type"], "error");
  EXPECT_EQ(get.json()["error"]["type"], "invalid_request_error");
  const ClientReply type =
      client.request("POST", "/v2/chat", "a=b", {{"Content-Type", "text/plain"}});
  EXPECT_EQ(type.status, 415);
  EXPECT_THAT(type.json()["message"].get<std::string>(), HasSubstr("Content-Type"));
  EXPECT_EQ(client.post("/v1/messages?beta=true", anthropic()).status, 200);
}

}  // namespace
}  // namespace anyslot::server
