// The queue, the buffers of slow readers, and the end of the server.
#include <gtest/gtest.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/socket_base.hpp>
#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "test_server.h"

namespace anyslot::server {
namespace {

using nlohmann::json;

TEST(ServerQueue, RefusesBeforeItReadsTheBody) {
  ServerOptions options;
  options.max_requests = 1;
  TestServer server(bundled_config(), options);
  TestClient first = server.connect();
  first.open_stream("/v1/completions", server.long_answer(3000));
  for (const std::string path :
       {"/v1/completions", "/v1/chat/completions", "/v1/documents", "/tokenize", "/detokenize"}) {
    TestClient late = server.connect();
    late.send("POST " + path +
              " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
              "Content-Length: 1000000\r\n\r\n");
    EXPECT_EQ(late.read_reply().status, 429) << path;
  }
  first.close();
  server.expect_idle();
}

TEST(ServerQueue, RefusesMoreThanItsQueueHolds) {
  ServerOptions options;
  options.max_requests = 2;
  TestServer server(bundled_config(), options);
  TestClient first = server.connect();
  TestClient second = server.connect();
  first.open_stream("/v1/completions", server.long_answer(3000));
  second.open_stream("/v1/completions", server.long_answer(3000));
  TestClient third = server.connect();
  const ClientReply reply = third.post("/v1/completions", server.long_answer(1));
  EXPECT_EQ(reply.status, 429);
  EXPECT_EQ(reply.error_code(), "queue_full");
  EXPECT_EQ(reply.headers.at("retry-after"), "1");
  EXPECT_EQ(third.get("/ready").status, 503);
  first.close();
  second.close();
  server.expect_idle();
  EXPECT_EQ(third.get("/ready").status, 200);
}

TEST(ServerQueue, TokenizingAndRegisteringTakePlacesInIt) {
  ServerOptions options;
  options.max_requests = 1;
  TestServer server(bundled_config(), options);
  TestClient first = server.connect();
  first.open_stream("/v1/completions", server.long_answer(3000));
  TestClient second = server.connect();
  for (const auto& [path, body] :
       std::vector<std::pair<std::string, json>>{{"/tokenize", {{"prompt", "abc"}}},
                                                 {"/detokenize", {{"tokens", {1}}}},
                                                 {"/v1/documents", {{"documents", {"abc"}}}}}) {
    const ClientReply reply = second.post(path, body);
    EXPECT_EQ(reply.status, 429) << path;
    EXPECT_EQ(reply.error_code(), "queue_full") << path;
  }
  first.close();
  server.expect_idle();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(second.post("/tokenize", {{"prompt", "abc"}}).status, 200) << "places are given back";
    EXPECT_EQ(second.post("/v1/documents", {{"documents", {"abc"}}}).status, 200);
    EXPECT_EQ(second.post("/v1/documents", {{"documents", json::array()}}).status, 200);
  }
}

TEST(ServerQueue, AnAnswerOfManyLogprobsIsWrittenWhole) {
  TestServer server(bundled_config());
  json body = server.long_answer(20);
  body["stream"] = false;
  body["n"] = 8;
  body["logprobs"] = 20;  // about 260 KB
  const ClientReply reply = server.connect().post("/v1/completions", body);
  ASSERT_EQ(reply.status, 200);
  const json choices = reply.json()["choices"];
  ASSERT_EQ(choices.size(), 8U);
  for (const json& choice : choices) {
    EXPECT_EQ(choice["logprobs"]["tokens"].size(), 20U);
    EXPECT_GE(choice["logprobs"]["top_logprobs"][19].size(), 10U);
  }
  server.expect_idle();
}

TEST(ServerQueue, TokenizesSoMuchOfATextAtATime) {
  TestServer server(bundled_config());
  std::string text;
  while (text.size() < (4 << 20)) text += "x 1 y 2 ";
  const ClientReply reply = server.connect().post("/tokenize", {{"prompt", text}});
  EXPECT_EQ(reply.status, 413);
  EXPECT_EQ(reply.error_code(), "too_many_tokens");
}

TEST(ServerBuffers, DropsASlowReaderWithoutHoldingUpOthers) {
  ServerOptions options;
  options.limits.max_unsent_bytes = 16 << 10;
  options.limits.send_buffer_bytes = 8 << 10;
  TestServer server(bundled_config(), options);
  TestClient slow = server.connect();
  slow.socket().set_option(asio::socket_base::receive_buffer_size(4096));
  json body = server.long_answer(1000);
  body["n"] = 8;
  slow.send_request("POST", "/v1/completions", body.dump(), {});
  while (server.engine().stats().running_requests == 0) std::this_thread::yield();
  TestClient other = server.connect();
  other.open_stream("/v1/completions", server.long_answer(20));
  EXPECT_EQ(other.all_events().back(), "[DONE]");
  server.expect_idle();
  EXPECT_EQ(server.metric("anyslot_requests_total{outcome=\"aborted\"}"), 1);
  EXPECT_LT(server.metric("anyslot_generated_tokens_total"), 8000);
}

TEST(ServerBuffers, KeepsAReaderThatIsSlowButReads) {
  ServerOptions options;
  options.limits.write_timeout = std::chrono::seconds(2);
  options.limits.send_buffer_bytes = 8 << 10;
  TestServer server(bundled_config(), options);
  TestClient client = server.connect();
  client.socket().set_option(asio::socket_base::receive_buffer_size(4096));
  std::string text;
  while (text.size() < 200'000) text += "The river Masa flows. ";
  const json body = {{"prompt", text}, {"return_token_strs", true}};
  const auto start = std::chrono::steady_clock::now();
  client.send_request("POST", "/tokenize", body.dump(), {});
  // The whole answer takes twice as long as a client may take nothing.
  std::string received;
  std::array<char, 4096> part{};
  while (!received.ends_with("]}")) {
    const size_t size = client.socket().read_some(asio::buffer(part));
    received.append(part.data(), size);
    const auto pace = std::chrono::microseconds(received.size() * 4'000'000 / (text.size() * 2));
    std::this_thread::sleep_until(start + pace);
  }
  EXPECT_GT(std::chrono::steady_clock::now() - start, 1.5 * options.limits.write_timeout);
  EXPECT_EQ(json::parse(received.substr(received.find('{')))["tokens"].size(),
            server.engine().tokenize(text, {}).value().size());
}

TEST(ServerShutdown, FinishesWhatRuns) {
  constexpr int kTokens = 100;  // few enough for the grace time under a sanitizer on a busy machine
  ServerOptions options;
  options.grace = std::chrono::minutes(4);
  TestServer server(bundled_config(), options);
  TestClient client = server.connect();
  TestClient idle = server.connect();
  ASSERT_EQ(idle.get("/health").status, 200);
  client.open_stream("/v1/completions", server.long_answer(kTokens));
  client.next_event();
  server.stop();
  EXPECT_EQ(idle.read_to_end(), "");
  const auto events = client.all_events();
  EXPECT_EQ(events.back(), "[DONE]");
  EXPECT_EQ(json::parse(events[events.size() - 2])["usage"]["completion_tokens"], kTokens);
  EXPECT_EQ(client.read_to_end(), "");
  server.join();
  EXPECT_ANY_THROW(server.connect()) << "it takes no connections any more";
}

TEST(ServerShutdown, CutsOffWhatOutlastsTheGraceTime) {
  ServerOptions options;
  options.grace = std::chrono::milliseconds(800);
  TestServer server(bundled_config(), options);
  TestClient streaming = server.connect();
  TestClient waiting = server.connect();
  streaming.open_stream("/v1/completions", server.long_answer(4000));
  streaming.next_event();
  json body = server.long_answer(4000);
  body["stream"] = false;
  waiting.send_request("POST", "/v1/completions", body.dump(), {});
  while (server.engine().stats().running_requests < 2) std::this_thread::yield();
  server.stop();
  const auto events = streaming.all_events();
  ASSERT_GE(events.size(), 2U);
  EXPECT_EQ(events.back(), "[DONE]");
  EXPECT_EQ(json::parse(events[events.size() - 2])["error"]["code"], "shutting_down");
  EXPECT_EQ(waiting.read_reply().status, 503);
  server.join();
  server.expect_idle();
}

TEST(ServerShutdown, RefusesNewRequestsOnOpenConnections) {
  TestServer server(bundled_config());
  TestClient busy = server.connect();
  busy.open_stream("/v1/completions", server.long_answer(300));
  busy.next_event();
  TestClient late = server.connect();
  ASSERT_EQ(late.get("/health").status, 200);
  late.send(
      "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
      "application/json\r\nContent-Length: 2\r\n");
  ASSERT_EQ(server.connect().get("/health").status, 200);  // so that the head has been read
  server.stop();
  late.send("\r\n{}");
  const ClientReply reply = late.read_reply();
  EXPECT_EQ(reply.status, 503);
  EXPECT_EQ(reply.headers.at("connection"), "close");
  EXPECT_EQ(busy.all_events().back(), "[DONE]");
}

}  // namespace
}  // namespace anyslot::server
