// What a pool keeps through floods of documents that come once.
#include <gtest/gtest.h>

#include <string>

#include "soak/scale.h"

namespace anyslot::soak {
namespace {

using nlohmann::json;
using server::TestClient;
using server::TestServer;

class CacheSoak : public testing::TestWithParam<Scale> {
 protected:
  static json named(const std::string& name) {
    std::string text;
    for (int i = 0; i < 12; ++i) text += "The river " + name + " flows through a city in Norway. ";
    return {{"id", name}, {"text", text}};
  }

  /// How the server came by the one document of a request.
  static json ask(TestClient& client, const TestServer& server, const json& document) {
    const auto reply = client.post("/v1/completions", {{"model", server.model()},
                                                       {"documents", {document}},
                                                       {"prompt", "Which river?"},
                                                       {"max_tokens", 1}});
    if (reply.status != 200) throw std::runtime_error(reply.body);
    return reply.json()["usage"]["documents"][0];
  }

  /// Asks about documents that nobody else names until they would fill the pool so many times.
  int flood(TestClient& client, const TestServer& server, int64_t times) {
    const int64_t wanted = times * GetParam().pool_blocks;
    Progress progress("blocks of the flood", static_cast<int>(wanted));
    int documents = 0;
    for (int64_t blocks = 0; blocks < wanted; ++documents) {
      const json used = ask(client, server, named("number " + std::to_string(++flooded_)));
      EXPECT_EQ(used["source"], "computed");
      blocks += (used["tokens"].get<int64_t>() + kBlockTokens - 1) / kBlockTokens;
      progress(static_cast<int>(std::min(blocks, wanted)));
    }
    return documents;
  }

 private:
  int flooded_ = 1'000'000;
};

INSTANTIATE_TEST_SUITE_P(Short, CacheSoak, testing::Values(kShort),
                         [](const auto&) { return std::string("short"); });
INSTANTIATE_TEST_SUITE_P(Long, CacheSoak, testing::Values(kLong),
                         [](const auto&) { return std::string("long"); });

TEST_P(CacheSoak, WhatIsUsedOftenOrPinnedOutlastsAFlood) {
  TestServer server(config_with_blocks(GetParam().pool_blocks));
  TestClient client = server.connect();
  json pinned = named("Ilka");
  pinned["pin"] = true;
  ASSERT_EQ(client.post("/v1/documents", {{"documents", {pinned}}}).status, 200);
  ask(client, server, named("Usk"));
  for (int i = 0; i < GetParam().uses; ++i) ask(client, server, named("Masa"));

  const int documents = flood(client, server, 10);
  EXPECT_EQ(ask(client, server, named("Masa"))["source"], "pool");
  EXPECT_EQ(ask(client, server, named("Usk"))["source"], "computed") << "the flood was none";
  flood(client, server, 10);
  EXPECT_EQ(ask(client, server, named("Ilka"))["source"], "pool");
  server.expect_idle();
  RecordProperty("pool_blocks", std::to_string(GetParam().pool_blocks));
  RecordProperty("uses", GetParam().uses);
  RecordProperty("documents_of_ten_pools", documents);
}

}  // namespace
}  // namespace anyslot::soak
