// Many clients at once: all are answered rightly, and those who leave harm nobody.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "test_server.h"

namespace anyslot::server {
namespace {

using nlohmann::json;

constexpr int kDocuments = 12;
constexpr int kClients = 32;
constexpr int kRequests = 3;  // of each client

std::string town(int index) { return "Town" + std::string(1, static_cast<char>('A' + index)); }

json document(int index) {
  return {{"id", town(index)},
          {"title", town(index)},
          {"text", town(index) + " is a city in Norway. The river Masa" +
                       std::string(1, static_cast<char>('a' + index)) + " flows through it."}};
}

/// A question about one of four documents in a random order.
json random_question(const std::string& model, std::mt19937& random) {
  std::vector<int> order(kDocuments);
  for (int i = 0; i < kDocuments; ++i) order[static_cast<size_t>(i)] = i;
  std::shuffle(order.begin(), order.end(), random);
  json documents = json::array();
  for (size_t i = 0; i < 4; ++i) documents.push_back(document(order[i]));
  return {{"model", model},
          {"documents", documents},
          {"messages",
           {{{"role", "user"},
             {"content", "Which river flows through " + town(order[random() % 4]) + "?"}}}},
          {"temperature", 0},
          {"max_tokens", 12},
          {"ignore_eos", true},
          {"stream", true}};
}

std::string streamed_text(TestClient& client, const json& question) {
  const ClientReply head = client.open_stream("/v1/chat/completions", question);
  if (head.status != 200) return "status " + std::to_string(head.status) + ": " + head.body;
  std::string text;
  for (const std::string& event : client.all_events()) {
    if (event == "[DONE]") return text;
    const json chunk = json::parse(event);
    if (chunk.contains("error")) return event;
    text += chunk["choices"][0]["delta"].value("content", "");
  }
  return "no end";
}

struct Crowd {
  std::vector<json> questions;
  std::vector<std::string> answers;   // one after the other
  std::vector<std::string> received;  // all at once
};

void run_crowd(TestServer& server, uint32_t seed, bool with_aborts) {
  std::mt19937 random(seed);
  Crowd crowd;
  TestClient alone = server.connect();
  for (int i = 0; i < kClients * kRequests; ++i) {
    crowd.questions.push_back(random_question(server.model(), random));
    crowd.answers.push_back(streamed_text(alone, crowd.questions.back()));
  }
  crowd.received.resize(crowd.questions.size());
  std::vector<std::thread> clients;
  for (int c = 0; c < kClients; ++c) {
    clients.emplace_back([&server, &crowd, c] {
      TestClient client = server.connect();
      for (int i = 0; i < kRequests; ++i) {
        const auto at = static_cast<size_t>(c * kRequests + i);
        crowd.received[at] = streamed_text(client, crowd.questions[at]);
      }
    });
  }
  for (int c = 0; with_aborts && c < kClients; ++c) {
    const auto own_seed = static_cast<uint32_t>(random());
    clients.emplace_back([&server, &crowd, own_seed] {
      std::mt19937 own(own_seed);
      for (int i = 0; i < kRequests; ++i) {
        TestClient client = server.connect();
        client.send_request("POST", "/v1/chat/completions",
                            crowd.questions[own() % crowd.questions.size()].dump(), {});
        if (own() % 2 == 0) continue;  // leaves at once
        client.read_reply();
        for (auto events = own() % 8; events > 0; --events) client.next_event();
      }
    });
  }
  for (std::thread& client : clients) client.join();
  for (size_t i = 0; i < crowd.answers.size(); ++i) {
    EXPECT_EQ(crowd.received[i], crowd.answers[i]) << crowd.questions[i] << " seed " << seed;
  }
  server.expect_idle();
}

TEST(ServerCrowd, GetsTheAnswersOfOneAfterTheOther) {
  TestServer server(bundled_config());
  run_crowd(server, 1, false);
}

TEST(ServerCrowd, IsNotHarmedByThoseWhoLeave) {
  TestServer server(bundled_config());
  run_crowd(server, 2, true);
}

TEST(ServerCrowd, FitsIntoASmallPool) {
  EngineConfig config = bundled_config();
  config.kv_cache_bytes = int64_t{5} << 19;
  TestServer server(config);
  run_crowd(server, 3, true);
  EXPECT_GT(server.metric("anyslot_evictions_total"), 0);
}

}  // namespace
}  // namespace anyslot::server
