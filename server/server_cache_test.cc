// The cache as clients see it over HTTP.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "test_server.h"

namespace anyslot::server {
namespace {

using nlohmann::json;

json question(const TestServer& server, const json& documents, json fields = json::object()) {
  json body = {{"model", server.model()},
               {"documents", documents},
               {"prompt", "The river"},
               {"temperature", 0},
               {"max_tokens", 4}};
  body.update(fields);
  return body;
}

std::string long_text() {
  std::string text;
  for (int i = 0; i < 20; ++i) text += "The river Masa" + std::to_string(i) + " is in Norway. ";
  return text;
}

TEST(ServerCache, SixteenClientsWithOneColdDocumentEncodeItOnce) {
  TestServer server(bundled_config());
  std::vector<json> used(16);
  std::vector<std::thread> clients;
  for (json& document : used) {
    clients.emplace_back([&server, &document] {
      TestClient client = server.connect();
      const json body = question(server, {long_text()});
      document = client.post("/v1/completions", body).json()["usage"]["documents"][0];
    });
  }
  for (std::thread& client : clients) client.join();
  int computed = 0;
  for (const json& document : used) {
    computed += document["source"] == "computed" ? 1 : 0;
    if (document["source"] == "joined") {
      EXPECT_EQ(document["cached_tokens"], 0);
    }
  }
  EXPECT_EQ(computed, 1);
  const double tokens = used[0]["tokens"].get<double>();
  const std::string metric = "anyslot_prompt_tokens_total{kind=\"document\",source=";
  EXPECT_EQ(server.metric(metric + "\"computed\"}"), tokens);
  EXPECT_EQ(server.metric(metric + "\"joined\"}") + server.metric(metric + "\"pool\"}"),
            15 * tokens);
  server.expect_idle();
}

TEST(ServerCache, ATimeToLiveEnds) {
  TestServer server(bundled_config());
  TestClient client = server.connect();
  const json timed = {{"id", "timed"}, {"text", "The river Masa. "}, {"ttl", 1}};
  const json documents = {timed, {{"id", "lasting"}, {"text", "The river Ilka. "}}};
  const auto source = [&](const json& body) {
    return client.post("/v1/completions", body).json()["usage"]["documents"][0]["source"];
  };
  ASSERT_EQ(source(question(server, documents)), "computed");
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (true) {
    const json listed = client.get("/v1/documents").json()["data"];
    if (listed.size() == 1) {
      EXPECT_EQ(listed[0]["id"], "lasting");
      EXPECT_TRUE(listed[0]["ttl_left_seconds"].is_null());
      break;
    }
    for (const json& document : listed) {
      if (document["id"] != "timed") continue;
      EXPECT_LE(document["ttl_left_seconds"].get<double>(), 1);
    }
    ASSERT_LT(std::chrono::steady_clock::now(), deadline) << listed;
  }
  EXPECT_EQ(source(question(server, documents)), "computed");
  EXPECT_EQ(source(question(server, json::array({documents[1]}))), "pool");
  EXPECT_GE(server.metric("anyslot_expirations_total"), 1);
}

json many_documents(int count) {
  json documents = json::array();
  for (int i = 0; i < count; ++i) {
    documents.push_back("The document " + std::to_string(i) + " of many. " + long_text());
  }
  return {{"documents", documents}};
}

TEST(ServerCache, AClientThatLeavesEndsItsRegistration) {
  TestServer server(bundled_config());
  {
    TestClient client = server.connect();
    client.send_request("POST", "/v1/documents", many_documents(500).dump(), {});
    while (server.engine().documents("")->empty()) std::this_thread::yield();
  }
  server.expect_idle();
  EXPECT_LT(server.engine().documents("")->size(), 400U);
}

TEST(ServerCache, ManyRegisteredDocumentsHoldNobodyUp) {
  TestServer server(bundled_config());
  TestClient registering = server.connect();
  registering.send_request("POST", "/v1/documents", many_documents(500).dump(), {});
  while (server.engine().documents("")->empty()) std::this_thread::yield();
  EXPECT_EQ(server.connect().post("/v1/completions", question(server, {"Short. "})).status, 200);
  EXPECT_LT(server.engine().documents("")->size(), 400U);
  registering.close();
  server.expect_idle();
}

TEST(ServerCache, TheFirstDocumentThatFailsEndsARegistration) {
  TestServer server(bundled_config());
  TestClient client = server.connect();
  json body = many_documents(20);
  std::string large;
  for (int i = 0; i < 2000; ++i) large += "The river Masa is in Norway. ";
  body["documents"][3] = large;
  const ClientReply reply = client.post("/v1/documents", body);
  EXPECT_EQ(reply.status, 400);
  EXPECT_EQ(reply.error_code(), "context_length_exceeded");
  EXPECT_EQ(reply.json()["error"]["param"], "documents[3]");
  server.expect_idle();
  EXPECT_EQ(client.post("/v1/documents", many_documents(20)).json()["data"].size(), 20U);
}

TEST(ServerCache, APinWithoutRoomIsNotAPromptThatIsTooLong) {
  EngineConfig config = bundled_config();
  config.kv_cache_bytes = int64_t{8} << 20;  // 64 blocks, of which 32 may be pinned
  TestServer server(config);
  std::string text;
  while (server.engine().tokenize(text, {}).value().size() < size_t{40} * 16) text += long_text();
  const json pinned = {{{"text", text}, {"pin", true}}};
  TestClient client = server.connect();
  const auto code = [](const ClientReply& reply) {
    EXPECT_EQ(reply.status, 400) << reply.body;
    return reply.error_code();
  };
  EXPECT_EQ(code(client.post("/v1/completions", question(server, pinned))), "no_room");
  const ClientReply registered = client.post("/v1/documents", {{"documents", pinned}});
  EXPECT_EQ(code(registered), "no_room");
  EXPECT_EQ(registered.json()["error"]["param"], "documents[0]");
  const ClientReply unpinned = client.post("/v1/documents", {{"documents", {text}}});
  ASSERT_EQ(unpinned.status, 200) << unpinned.body;
  const std::string key = unpinned.json()["data"][0]["key"];
  EXPECT_EQ(code(client.request("POST", "/v1/documents/" + key + "/pin", "", {})), "no_room");
  server.expect_idle();
}

TEST(ServerCache, EachMethodAndSaltIsColdOnItsOwn) {
  TestServer server(bundled_config());
  TestClient client = server.connect();
  const auto cached = [&](const json& fields) {
    const json body = question(server, {long_text()}, fields);
    const json usage = client.post("/v1/completions", body).json()["usage"];
    return usage["documents"][0]["cached_tokens"].get<int>() > 0;
  };
  for (const json& fields : {json{{"cache_salt", "red"}}, json{{"cache_salt", "blue"}},
                             json{{"method", "mepic"}}, json{{"method", "prefix"}}}) {
    EXPECT_FALSE(cached(fields)) << fields;
    EXPECT_TRUE(cached(fields)) << fields;
  }
  EXPECT_FALSE(cached({{"method", "full"}}));
  EXPECT_FALSE(cached({{"method", "full"}}));
}

}  // namespace
}  // namespace anyslot::server
