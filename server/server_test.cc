// Answers, streams, documents and the other ways in, on the bundled model.
#include "server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/random_model.h"
#include "support/temporary_folder.h"
#include "test_server.h"

namespace anyslot::server {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using testing_support::TemporaryFolder;

const json kDocuments = json::parse(R"([
    {"id": "a", "title": "Lornaburg",
     "text": "Lornaburg is a city in Japan. The river Masa flows through it."},
    {"id": "b", "title": "Fenholm",
     "text": "Fenholm is a city in Norway. The river Ilka flows through it."}])");

class ServerTest : public SharedServerTest<ServerTest> {
 protected:
  void TearDown() override { server->expect_idle(); }

  static json chat(json fields = json::object()) {
    json body = {
        {"model", server->model()},
        {"messages", {{{"role", "user"}, {"content", "Which river flows through Lornaburg?"}}}},
        {"documents", kDocuments},
        {"temperature", 0},
        {"max_tokens", 16}};
    body.update(fields);
    return body;
  }
  static json completion(json fields = json::object()) {
    json body = {
        {"model", server->model()}, {"prompt", "The river"}, {"temperature", 0}, {"max_tokens", 8}};
    body.update(fields);
    return body;
  }

  /// The answer of the engine itself to the question of chat().
  static std::string direct_answer() {
    Request request;
    request.segments = *server->engine().render_rag(
        {{"Lornaburg", kDocuments[0]["text"], "a"}, {"Fenholm", kDocuments[1]["text"], "b"}},
        "Which river flows through Lornaburg?");
    request.sampling.max_tokens = 16;
    auto stream = server->engine().submit(request);
    if (!stream.ok()) throw std::runtime_error(stream.status().message());
    std::string text;
    for (bool last = false; !last;) {
      const Event event = stream->next();
      text += event.text;
      last = event.last;
    }
    return text;
  }
};

TEST_F(ServerTest, AnswersAChatFromDocuments) {
  TestClient client = server->connect();
  const std::string salt = "answers-a-chat";
  const ClientReply reply = client.post("/v1/chat/completions", chat({{"cache_salt", salt}}));
  ASSERT_EQ(reply.status, 200) << reply.body;
  const json answer = reply.json();
  EXPECT_EQ(answer["object"], "chat.completion");
  EXPECT_EQ(answer["choices"][0]["message"]["content"], direct_answer());
  EXPECT_THAT(direct_answer(), HasSubstr("Masa"));
  EXPECT_EQ(answer["choices"][0]["finish_reason"], "stop");
  const json& usage = answer["usage"];
  EXPECT_EQ(usage["prompt_tokens_details"]["cached_tokens"], 0);
  EXPECT_EQ(usage["documents"][0]["id"], "a");
  EXPECT_EQ(usage["documents"][0]["source"], "computed");

  const json warm = client.post("/v1/chat/completions", chat({{"cache_salt", salt}})).json();
  EXPECT_EQ(warm["choices"], answer["choices"]);
  for (const json& document : warm["usage"]["documents"]) {
    EXPECT_EQ(document["source"], "pool");
    EXPECT_EQ(document["cached_tokens"], document["tokens"]);
  }
  EXPECT_GT(warm["usage"]["prompt_tokens_details"]["cached_tokens"], 0);
}

TEST_F(ServerTest, StreamsTheSameAnswer) {
  TestClient client = server->connect();
  const ClientReply head =
      client.open_stream("/v1/chat/completions",
                         chat({{"stream", true}, {"stream_options", {{"include_usage", true}}}}));
  EXPECT_EQ(head.status, 200);
  EXPECT_THAT(head.headers.at("content-type"), HasSubstr("text/event-stream"));
  const std::vector<std::string> events = client.all_events();
  ASSERT_GE(events.size(), 4U);
  EXPECT_EQ(events.back(), "[DONE]");
  EXPECT_EQ(json::parse(events[0])["choices"][0]["delta"]["role"], "assistant");
  std::string text;
  std::string id;
  for (size_t i = 0; i + 2 < events.size(); ++i) {
    const json chunk = json::parse(events[i]);
    EXPECT_EQ(chunk["object"], "chat.completion.chunk");
    EXPECT_TRUE(chunk["usage"].is_null());
    text += chunk["choices"][0]["delta"].value("content", "");
    id = chunk["id"];
  }
  EXPECT_EQ(text, direct_answer());
  const json last = json::parse(events[events.size() - 2]);
  EXPECT_EQ(last["id"], id);
  EXPECT_TRUE(last["choices"].empty());
  EXPECT_EQ(last["usage"]["documents"].size(), 2U);
  // The connection can be used again.
  EXPECT_EQ(client.get("/health").status, 200);
}

TEST_F(ServerTest, TellsUsageInTheLastChunkEvenUnasked) {
  TestClient client = server->connect();
  client.open_stream("/v1/completions", completion({{"stream", true}}));
  const auto events = client.all_events();
  const json last = json::parse(events[events.size() - 2]);
  EXPECT_EQ(last["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(last["usage"]["completion_tokens"], 8);
  EXPECT_FALSE(json::parse(events[0]).contains("usage"));
}

TEST_F(ServerTest, GivesSeveralChoicesWithLogprobs) {
  TestClient client = server->connect();
  const json answer = client
                          .post("/v1/completions", completion({{"n", 3},
                                                               {"temperature", 1},
                                                               {"seed", 5},
                                                               {"logprobs", 2},
                                                               {"ignore_eos", true}}))
                          .json();
  ASSERT_EQ(answer["choices"].size(), 3U) << answer;
  for (int i = 0; i < 3; ++i) {
    const json& choice = answer["choices"][i];
    EXPECT_EQ(choice["index"], i);
    EXPECT_EQ(choice["logprobs"]["tokens"].size(), 8U);
    EXPECT_EQ(choice["logprobs"]["text_offset"].size(), 8U);
    EXPECT_GE(choice["logprobs"]["top_logprobs"][0].size(), 2U);
    std::string text;
    for (const json& token : choice["logprobs"]["tokens"]) text += token.get<std::string>();
    EXPECT_EQ(text, choice["text"].get<std::string>());
  }
  EXPECT_EQ(answer["usage"]["completion_tokens"], 24);
}

TEST_F(ServerTest, StopsAtStrings) {
  const std::string whole = direct_answer();
  TestClient client = server->connect();
  const std::string stop = whole.substr(1, 2);
  const json answer = client.post("/v1/chat/completions", chat({{"stop", stop}})).json();
  EXPECT_EQ(answer["choices"][0]["message"]["content"], whole.substr(0, whole.find(stop)));
  EXPECT_EQ(answer["choices"][0]["stop_reason"], stop);
}

TEST_F(ServerTest, GoesOnWithAConversation) {
  TestClient client = server->connect();
  const json messages = json::parse(R"([
      {"role": "system", "content": "Answer in one word."},
      {"role": "user", "content": "Which river flows through Lornaburg?"},
      {"role": "assistant", "content": "Masa"},
      {"role": "user", "content": "Which river flows through Fenholm?"}])");
  const ClientReply reply = client.post("/v1/chat/completions", chat({{"messages", messages}}));
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(reply.json()["usage"]["documents"].size(), 2U);

  json wrong = messages;
  wrong.erase(3);
  const ClientReply refused = client.post("/v1/chat/completions", chat({{"messages", wrong}}));
  EXPECT_EQ(refused.status, 400);
  EXPECT_THAT(refused.error_message(), HasSubstr("last message"));
}

TEST_F(ServerTest, PutsDocumentsBeforeThePromptOfACompletion) {
  TestClient client = server->connect();
  const json answer =
      client.post("/v1/completions", completion({{"documents", {"Bare text. ", kDocuments[0]}}}))
          .json();
  ASSERT_EQ(answer["usage"]["documents"].size(), 2U) << answer;
  const auto tokens = server->engine().tokenize("The river", {});
  int64_t total = static_cast<int64_t>(tokens->size());
  for (const json& document : answer["usage"]["documents"]) {
    total += document["tokens"].get<int64_t>();
  }
  EXPECT_EQ(answer["usage"]["prompt_tokens"], total);
}

TEST_F(ServerTest, KeepsSaltsApart) {
  TestClient client = server->connect();
  client.post("/v1/chat/completions", chat({{"cache_salt", "one"}}));
  const auto source = [&client](const std::string& salt) {
    return client.post("/v1/chat/completions", chat({{"cache_salt", salt}}))
        .json()["usage"]["documents"][0]["source"];
  };
  EXPECT_EQ(source("one"), "pool");
  EXPECT_EQ(source("two"), "computed");
}

TEST_F(ServerTest, RegistersListsPinsAndRemovesDocuments) {
  TestClient client = server->connect();
  const ClientReply reply =
      client.post("/v1/documents", {{"documents", kDocuments}, {"cache_salt", "registered"}});
  ASSERT_EQ(reply.status, 200) << reply.body;
  const std::string key = reply.json()["data"][0]["key"];
  const json answer =
      client.post("/v1/chat/completions", chat({{"cache_salt", "registered"}})).json();
  for (const json& document : answer["usage"]["documents"]) EXPECT_EQ(document["source"], "pool");

  const std::string salt = "?cache_salt=registered";
  const json list = client.get("/v1/documents" + salt).json()["data"];
  const auto registered =
      std::ranges::find_if(list, [&key](const json& document) { return document["key"] == key; });
  ASSERT_NE(registered, list.end()) << list;
  EXPECT_EQ((*registered)["id"], "a");
  EXPECT_EQ((*registered)["hits"], 1);
  EXPECT_EQ((*registered)["pinned"], false);
  EXPECT_GT((*registered)["bytes"], 0);
  const json others = client.get("/v1/documents?cache_salt=else").json();
  for (const json& other : others["data"]) EXPECT_NE(other["key"], key);

  const std::string path = "/v1/documents/" + key;
  EXPECT_EQ(client.request("POST", path + "/pin" + salt, "", {}).status, 200);
  EXPECT_EQ(client.request("DELETE", path + salt, "", {}).status, 400) << "it is pinned";
  EXPECT_EQ(client.request("POST", path + "/unpin" + salt, "", {}).status, 200);
  EXPECT_EQ(client.request("DELETE", path, "", {}).status, 404) << "of another salt";
  EXPECT_EQ(client.request("DELETE", path + salt, "", {}).status, 200);
  EXPECT_EQ(client.request("DELETE", path + salt, "", {}).status, 404);
}

TEST_F(ServerTest, RefusesDocumentsThatNoMethodKeeps) {
  TestClient client = server->connect();
  const ClientReply reply =
      client.post("/v1/documents", {{"documents", kDocuments}, {"method", "prefix"}});
  EXPECT_EQ(reply.status, 400) << reply.body;
}

TEST_F(ServerTest, TokenizesAndBack) {
  TestClient client = server->connect();
  const json tokens = client.post("/tokenize", {{"prompt", "The river Masa"}}).json();
  EXPECT_EQ(tokens["tokens"], json(*server->engine().tokenize("The river Masa", {})));
  EXPECT_EQ(tokens["count"], tokens["tokens"].size());
  EXPECT_EQ(client.post("/detokenize", {{"tokens", tokens["tokens"]}}).json()["prompt"],
            "The river Masa");
  EXPECT_EQ(client.post("/detokenize", {{"tokens", {1 << 30}}}).status, 400);
}

TEST_F(ServerTest, TellsItsModelAndState) {
  TestClient client = server->connect();
  EXPECT_EQ(client.get("/v1/models").json()["data"][0]["id"], "rag-demo-14m");
  EXPECT_EQ(client.get("/v1/models/rag-demo-14m").json()["object"], "model");
  EXPECT_EQ(client.get("/v1/models/other").status, 404);
  EXPECT_EQ(client.get("/health").status, 200);
  EXPECT_EQ(client.get("/ready").status, 200);
}

TEST_F(ServerTest, CountsWhatItDoes) {
  const double requests = server->metric("anyslot_requests_total{outcome=\"ok\"}");
  const double tokens = server->metric("anyslot_generated_tokens_total");
  const double first = server->metric("anyslot_time_to_first_token_seconds_count");
  const double between = server->metric("anyslot_inter_token_seconds_count");
  const double hits = server->metric("anyslot_document_hit_tokens_total");
  const double misses = server->metric("anyslot_document_miss_tokens_total");
  TestClient client = server->connect();
  const json body = chat({{"cache_salt", "counted"}, {"ignore_eos", true}, {"max_tokens", 8}});
  const json usage = client.post("/v1/chat/completions", body).json()["usage"];
  client.post("/v1/chat/completions", body);
  const double document_tokens =
      usage["documents"][0]["tokens"].get<double>() + usage["documents"][1]["tokens"].get<double>();
  EXPECT_EQ(server->metric("anyslot_requests_total{outcome=\"ok\"}"), requests + 2);
  EXPECT_EQ(server->metric("anyslot_generated_tokens_total"), tokens + 16);
  EXPECT_EQ(server->metric("anyslot_time_to_first_token_seconds_count"), first + 2);
  EXPECT_EQ(server->metric("anyslot_inter_token_seconds_count"), between + 14);
  EXPECT_EQ(server->metric("anyslot_document_hit_tokens_total"), hits + document_tokens);
  EXPECT_EQ(server->metric("anyslot_document_miss_tokens_total"), misses + document_tokens);
}

TEST_F(ServerTest, RefusesWhatIsTooLongWithBothNumbers) {
  TestClient client = server->connect();
  const int64_t limit = server->engine().model().max_model_len;
  const std::vector<int32_t> prompt(static_cast<size_t>(limit) + 5, 7);
  const ClientReply reply = client.post("/v1/completions", completion({{"prompt", prompt}}));
  EXPECT_EQ(reply.status, 400);
  EXPECT_EQ(reply.error_code(), "context_length_exceeded");
  EXPECT_THAT(reply.error_message(), HasSubstr(std::to_string(limit + 5)));
  EXPECT_THAT(reply.error_message(), HasSubstr(std::to_string(limit)));
}

TEST_F(ServerTest, NamesTheFieldThatTheEngineRefuses) {
  const json pinned = {{"method", "prefix"}, {"documents", {{{"text", "x"}, {"pin", true}}}}};
  const json later = json::parse(R"([{"role": "user", "content": "a"},
      {"role": "assistant", "content": "b"},
      {"role": "user", "content": "c", "documents": ["x", {"text": "y", "pin": true}]}])");
  const json system_last = json::parse(R"([{"role": "user", "content": "a"},
      {"role": "system", "content": "b"}])");
  TestClient client = server->connect();
  const auto expect_refused = [&client](const std::string& path, const json& body,
                                        const std::string& param) {
    const ClientReply reply = client.post(path, body);
    EXPECT_EQ(reply.status, 400) << reply.body;
    EXPECT_EQ(reply.json()["error"]["param"], param) << reply.body;
  };
  const std::vector<std::pair<json, std::string>> chats = {
      {{{"temperature", 3000}}, "temperature"},
      {{{"top_p", 0}}, "top_p"},
      {{{"n", 1000}}, "n"},
      {{{"min_tokens", 17}}, "min_tokens"},
      {{{"stop", {"x", ""}}}, "stop"},
      {{{"logit_bias", {{"99999999", 1}}}}, "logit_bias"},
      {{{"logit_bias", {{"1", 1000}}}}, "logit_bias"},
      {pinned, "documents[0]"},
      {{{"method", "prefix"}, {"messages", later}}, "messages[2].documents[1]"},
      {{{"messages", system_last}}, "messages[1]"}};
  for (const auto& [fields, param] : chats) {
    expect_refused("/v1/chat/completions", chat(fields), param);
  }
  expect_refused("/v1/completions", completion({{"prompt", {1 << 30}}}), "prompt");
  expect_refused("/v1/completions", completion(pinned), "documents[0]");
  EXPECT_THAT(client.post("/v1/completions", completion(pinned)).error_message(),
              testing::StartsWith("documents[0] has a pin"));
}

TEST(ServerWithTokens, ServesAModelWithoutATokenizer) {
  const testing_support::TemporaryModel model{testing_support::RandomModel{}};
  EngineConfig config = bundled_config();
  config.model_path = model.path();
  ServerOptions options;
  options.served_model_name = "tiny";
  TestServer server(config, options);
  TestClient client = server.connect();
  const json body = {{"model", "tiny"},
                     {"prompt", {5, 6, 7, 8}},
                     {"max_tokens", 4},
                     {"temperature", 0},
                     {"ignore_eos", true}};
  const json answer = client.post("/v1/completions", body).json();
  EXPECT_EQ(answer["usage"]["completion_tokens"], 4) << answer;
  EXPECT_EQ(client
                .post("/v1/chat/completions",
                      {{"model", "tiny"}, {"messages", {{{"role", "user"}, {"content", "x"}}}}})
                .status,
            400);
  EXPECT_EQ(client.post("/tokenize", {{"prompt", "x"}}).status, 400);
  EXPECT_EQ(client.post("/detokenize", {{"tokens", {1}}}).status, 400);
}

TEST(ServerWithKeys, TellsTenantsApart) {
  const TemporaryFolder folder;
  ServerOptions options;
  options.api_key_file = folder.write("keys", "alpha\nbeta\n");
  TestServer server(bundled_config(), options);
  const json body = {{"documents", {"A document of alpha."}}};
  // Who is refused before the body has been read must connect again.
  EXPECT_EQ(server.connect().post("/v1/documents", body).status, 401);
  const std::map<std::string, std::string> gamma = {{"Authorization", "Bearer gamma"}};
  EXPECT_EQ(server.connect().post("/v1/documents", body, gamma).error_code(), "invalid_api_key");
  TestClient client = server.connect();
  EXPECT_EQ(client.get("/v1/models").status, 401);
  EXPECT_EQ(client.get("/nowhere").status, 401) << "paths are not told to strangers";
  EXPECT_EQ(client.get("/health").status, 200);
  EXPECT_EQ(client.get("/metrics").status, 200);

  const std::map<std::string, std::string> alpha = {{"Authorization", "Bearer alpha"}};
  const std::map<std::string, std::string> beta = {{"Authorization", "Bearer beta"}};
  ASSERT_EQ(client.post("/v1/documents", body, alpha).status, 200);
  const auto list = [&client](const auto& key) {
    return client.request("GET", "/v1/documents", "", key).json()["data"];
  };
  const auto has_document = [](const json& documents) { return !documents.empty(); };
  EXPECT_TRUE(has_document(list(alpha)));
  EXPECT_FALSE(has_document(list(beta)));
  const std::string path = "/v1/documents/" + list(alpha)[0]["key"].get<std::string>();
  EXPECT_EQ(client.request("DELETE", path, "", beta).status, 404);
  EXPECT_EQ(client.request("DELETE", path, "", alpha).status, 200);
}

}  // namespace
}  // namespace anyslot::server
