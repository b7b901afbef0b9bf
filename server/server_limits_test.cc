// What the server refuses, cuts off and survives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/socket_base.hpp>

#include "support/random_model.h"
#include "support/temporary_folder.h"
#include "test_server.h"

namespace anyslot::server {
namespace {

using nlohmann::json;
using ::testing::AnyOf;
using ::testing::HasSubstr;

json long_answer(const TestServer& server, int max_tokens) {
  return {{"model", server.model()}, {"prompt", "The river"}, {"max_tokens", max_tokens},
          {"temperature", 0},        {"ignore_eos", true},    {"stream", true}};
}

const std::string kChunked =
    "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    "Transfer-Encoding: chunked\r\n\r\n";

class LimitsTest : public ::testing::Test {
 protected:
  static ServerOptions small_limits() {
    ServerOptions options;
    options.limits.max_body_bytes = 10'000;
    options.limits.max_header_bytes = 2'000;
    options.limits.max_json_depth = 8;
    options.limits.max_documents = 2;
    options.limits.header_timeout = std::chrono::milliseconds(200);
    options.limits.body_timeout = std::chrono::milliseconds(200);
    options.limits.idle_timeout = std::chrono::milliseconds(500);
    return options;
  }
  static void SetUpTestSuite() { server = new TestServer(bundled_config(), small_limits()); }
  static void TearDownTestSuite() {
    delete server;
    server = nullptr;
  }
  void TearDown() override {
    EXPECT_EQ(server->connect().get("/health").status, 200);
    server->expect_idle();
  }

  static TestServer* server;
};

TestServer* LimitsTest::server = nullptr;

TEST_F(LimitsTest, RefusesUnknownPathsAndMethods) {
  TestClient client = server->connect();
  EXPECT_EQ(client.get("/v1/nothing").status, 404);
  const ClientReply reply = client.get("/v1/completions");
  EXPECT_EQ(reply.status, 405);
  EXPECT_EQ(reply.headers.at("allow"), "POST");
  EXPECT_EQ(client.get("/v1/models?x=1").status, 400);
  EXPECT_EQ(client.get("/health").status, 200) << "the connection goes on";
}

TEST_F(LimitsTest, RefusesBodiesThatAreNoRequests) {
  TestClient client = server->connect();
  const auto code = [&client](const std::string& body) {
    const ClientReply reply = client.request("POST", "/v1/completions", body, {});
    EXPECT_EQ(reply.status, 400) << body;
    return reply.error_code();
  };
  EXPECT_EQ(code("{\"model\": "), "invalid_json");
  EXPECT_EQ(code("[1]"), "invalid_json");
  EXPECT_EQ(code("{\"prompt\": \"\xff\"}"), "invalid_json");
  EXPECT_EQ(code(std::string(9, '[')), "json_too_deep");
  EXPECT_EQ(code("{\"model\": \"rag-demo-14m\"}"), "missing_field");
  EXPECT_EQ(code("{\"model\": \"rag-demo-14m\", \"prompt\": \"x\", \"tools\": [1]}"),
            "unknown_field");
  EXPECT_EQ(code("{\"model\": \"rag-demo-14m\", \"prompt\": \"x\", "
                 "\"documents\": [\"a\", \"b\", \"c\"]}"),
            "too_many_documents");
  const ClientReply other =
      client.request("POST", "/v1/completions", "{\"model\": \"gpt-4\", \"prompt\": \"x\"}", {});
  EXPECT_EQ(other.status, 404);
  EXPECT_EQ(other.error_code(), "model_not_found");
}

TEST_F(LimitsTest, RefusesALargeBodyBeforeReadingIt) {
  TestClient client = server->connect();
  client.send(
      "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
      "application/json\r\nContent-Length: 10001\r\n\r\n");
  const ClientReply reply = client.read_reply();
  EXPECT_EQ(reply.status, 413);
  EXPECT_EQ(reply.headers.at("connection"), "close");
}

TEST_F(LimitsTest, RefusesALargeChunkedBody) {
  TestClient client = server->connect();
  client.send(
      "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
      "application/json\r\nTransfer-Encoding: chunked\r\n\r\n");
  client.send("4000\r\n" + std::string(0x4000, ' ') + "\r\n");
  EXPECT_EQ(client.read_reply().status, 413);
}

TEST_F(LimitsTest, TakesAChunkedBody) {
  TestClient client = server->connect();
  client.send(
      "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
      "application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
      "9\r\n{\"prompt\"\r\n8\r\n: \"abc\"}\r\n0\r\n\r\n");
  EXPECT_EQ(client.read_reply().status, 200);
}

TEST_F(LimitsTest, RefusesALargeTrailer) {
  TestClient client = server->connect();
  client.send(kChunked + "0\r\nX: " + std::string(65'536, 'a') + "\r\n\r\n");
  const ClientReply reply = client.read_reply();
  EXPECT_EQ(reply.status, 431);
  EXPECT_EQ(reply.headers.at("connection"), "close");
}

TEST_F(LimitsTest, RefusesALargeChunkExtension) {
  TestClient client = server->connect();
  client.send(kChunked + "1;x=" + std::string(20'000, 'a'));
  EXPECT_EQ(client.read_reply().status, 431);
}

TEST_F(LimitsTest, CountsTheFramingOfChunks) {
  TestClient client = server->connect();
  std::string chunks;
  for (int i = 0; i < 20; ++i) chunks += "1;x=" + std::string(1000, 'a') + "\r\n \r\n";
  client.send(kChunked + chunks);
  const ClientReply reply = client.read_reply();
  EXPECT_EQ(reply.status, 413);
  EXPECT_THAT(reply.error_message(), HasSubstr("--max-body"));
}

TEST_F(LimitsTest, RefusesATransferEncodingThatItDoesNotKnow) {
  for (const std::string encoding : {"gzip, chunked", "xchunked", "identity"}) {
    TestClient client = server->connect();
    client.send("POST /tokenize HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: " + encoding +
                "\r\n\r\n0\r\n\r\n");
    EXPECT_EQ(client.read_reply().status, 501) << encoding;
    EXPECT_EQ(client.read_to_end(), "") << encoding;
  }
}

TEST_F(LimitsTest, TakesAnyFormOfARequestThatHttpAllows) {
  TestClient client = server->connect();
  client.send("\r\n\r\nGET http://localhost/health?probe=1 HTTP/1.1\r\nHost: x\r\n\r\n\r\n");
  EXPECT_EQ(client.read_reply().status, 200);
  client.send("HEAD /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\nGET /health HTTP/1.0\r\n\r\n");
  const std::string replies = client.read_to_end();
  EXPECT_THAT(replies, ::testing::StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(replies, HasSubstr("\r\n\r\nHTTP/1.0 200")) << "HEAD has no body";
}

TEST_F(LimitsTest, WantsBodiesDeclaredAsJson) {
  const std::string body = R"({"prompt": "abc"})";
  for (const char* type :
       {"text/plain", "application/x-www-form-urlencoded", "application/jsonx"}) {
    const ClientReply reply =
        server->connect().request("POST", "/tokenize", body, {{"Content-Type", type}});
    EXPECT_EQ(reply.status, 415) << type;
    EXPECT_THAT(reply.error_message(), HasSubstr("Content-Type: application/json"));
  }
  TestClient client = server->connect();
  client.send("POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Length: 17\r\n\r\n" + body);
  EXPECT_EQ(client.read_reply().status, 415) << "undeclared";
  EXPECT_EQ(server->connect()
                .request("POST", "/tokenize", body,
                         {{"Content-Type", "Application/JSON ; charset=utf-8"}})
                .status,
            200);
}

TEST_F(LimitsTest, KnowsItsOwnHostsOnly) {
  TestClient client = server->connect();
  client.send("GET /v1/models HTTP/1.1\r\nHost: evil.example\r\n\r\n");
  const ClientReply reply = client.read_reply();
  EXPECT_EQ(reply.status, 421);
  EXPECT_EQ(reply.error_code(), "foreign_host");
  client.send("GET http://evil.example/v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(client.read_reply().status, 421);
}

TEST_F(LimitsTest, SaysContinueToThoseWhoAsk) {
  TestClient client = server->connect();
  client.send(
      "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
      "application/json\r\nContent-Length: 17\r\nExpect: "
      "100-Continue\r\n\r\n");
  EXPECT_EQ(client.read_reply().status, 100);
  client.send("{\"prompt\": \"abc\"}");
  EXPECT_EQ(client.read_reply().status, 200);
}

TEST_F(LimitsTest, TakesRequestsOneAfterTheOther) {
  TestClient client = server->connect();
  const std::string request = "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n";
  client.send(request + request + "GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(client.read_reply().status, 200);
  EXPECT_EQ(client.read_reply().status, 200);
  EXPECT_EQ(client.read_reply().status, 404);
}

TEST_F(LimitsTest, RefusesLargeHeaders) {
  TestClient client = server->connect();
  client.send("GET /health HTTP/1.1\r\nX: " + std::string(4000, 'x') + "\r\n\r\n");
  EXPECT_EQ(client.read_reply().status, 431);
}

TEST_F(LimitsTest, RefusesWhatIsNotHttp) {
  for (const std::string text :
       {"\x16\x03\x01\x02\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n",
        "POST /tokenize HTTP/1.1\r\nContent-Length: x\r\n\r\n",
        "POST /tokenize HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"}) {
    TestClient client = server->connect();
    client.send(text);
    const ClientReply reply = client.read_reply();
    EXPECT_EQ(reply.status, 400) << text;
    EXPECT_EQ(client.read_to_end(), "") << text;
  }
}

TEST_F(LimitsTest, DoesNotWaitForeverForARequest) {
  TestClient slow_header = server->connect();
  slow_header.send("GET /health HT");
  TestClient slow_body = server->connect();
  slow_body.send(
      "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
      "application/json\r\nContent-Length: 17\r\n\r\n{");
  TestClient idle = server->connect();
  EXPECT_EQ(slow_header.read_reply().status, 408);
  EXPECT_EQ(slow_body.read_reply().status, 408);
  EXPECT_EQ(idle.read_to_end(), "");
}

TEST_F(LimitsTest, NoticesAtOnceThatAClientLeaves) {
  const double aborted = server->metric("anyslot_requests_total{outcome=\"aborted\"}");
  const double tokens = server->metric("anyslot_generated_tokens_total");
  TestClient client = server->connect();
  client.open_stream("/v1/completions", long_answer(*server, 3000));
  client.next_event();
  client.close();
  server->expect_idle();
  EXPECT_EQ(server->metric("anyslot_requests_total{outcome=\"aborted\"}"), aborted + 1);
  EXPECT_LT(server->metric("anyslot_generated_tokens_total"), tokens + 2900);
}

TEST_F(LimitsTest, LeavingWhileTheAnswerIsMadeCancelsIt) {
  json body = long_answer(*server, 3000);
  body["stream"] = false;
  const double tokens = server->metric("anyslot_generated_tokens_total");
  {
    TestClient client = server->connect();
    client.send_request("POST", "/v1/completions", body.dump(), {});
    while (server->engine().stats().running_requests == 0) std::this_thread::yield();
  }
  server->expect_idle();
  EXPECT_LT(server->metric("anyslot_generated_tokens_total"), tokens + 2900);
}

TEST_F(LimitsTest, LeavingAfterAFurtherRequestCancels) {
  const double tokens = server->metric("anyslot_generated_tokens_total");
  for (const std::string more : {"\r\n", "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"}) {
    json body = long_answer(*server, 3000);
    body["stream"] = false;
    {
      TestClient client = server->connect();
      client.send_request("POST", "/v1/completions", body.dump(), {});
      client.send(more);
      while (server->engine().stats().running_requests == 0) std::this_thread::yield();
    }
    server->expect_idle();
  }
  EXPECT_LT(server->metric("anyslot_generated_tokens_total"), tokens + 2900);
}

TEST(ServerOptionsTest, RefusesNamesThatAreNoText) {
  auto engine = Engine::open(bundled_config());
  ASSERT_TRUE(engine.ok());
  for (const char* name : {"a\nb", "a\x1b[1m", "a\x7f", "a\xc2\x9b", "a\xff"}) {
    ServerOptions options;
    options.port = 0;
    options.served_model_name = name;
    const auto server = Server::create(*engine, options);
    EXPECT_EQ(server.status().code(), StatusCode::kInvalidArgument) << name;
  }
}

TEST(ServerQueue, RefusesMoreThanItsQueueHolds) {
  ServerOptions options;
  options.max_requests = 2;
  TestServer server(bundled_config(), options);
  TestClient first = server.connect();
  TestClient second = server.connect();
  first.open_stream("/v1/completions", long_answer(server, 3000));
  second.open_stream("/v1/completions", long_answer(server, 3000));
  TestClient third = server.connect();
  const ClientReply reply = third.post("/v1/completions", long_answer(server, 1));
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
  first.open_stream("/v1/completions", long_answer(server, 3000));
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
  json body = long_answer(server, 20);
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

TEST(ServerBuffers, DropsASlowReaderWithoutHoldingUpOthers) {
  ServerOptions options;
  options.limits.max_unsent_bytes = 16 << 10;
  options.limits.send_buffer_bytes = 8 << 10;
  TestServer server(bundled_config(), options);
  TestClient slow = server.connect();
  slow.socket().set_option(asio::socket_base::receive_buffer_size(4096));
  json body = long_answer(server, 1000);
  body["n"] = 8;
  slow.send_request("POST", "/v1/completions", body.dump(), {});
  while (server.engine().stats().running_requests == 0) std::this_thread::yield();
  TestClient other = server.connect();
  other.open_stream("/v1/completions", long_answer(server, 20));
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
  client.open_stream("/v1/completions", long_answer(server, kTokens));
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
  options.grace = std::chrono::milliseconds(100);
  TestServer server(bundled_config(), options);
  TestClient streaming = server.connect();
  TestClient waiting = server.connect();
  streaming.open_stream("/v1/completions", long_answer(server, 4000));
  streaming.next_event();
  json body = long_answer(server, 4000);
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
  busy.open_stream("/v1/completions", long_answer(server, 300));
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
