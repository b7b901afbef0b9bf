// What the server refuses, and what it takes of HTTP.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

#include "test_server.h"

namespace anyslot::server {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

const std::string kChunked =
    "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    "Transfer-Encoding: chunked\r\n\r\n";

class LimitsTest : public SharedServerTest<LimitsTest> {
 public:
  static ServerOptions options() {
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

 protected:
  void TearDown() override {
    EXPECT_EQ(server->connect().get("/health").status, 200);
    server->expect_idle();
  }
};

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

TEST_F(LimitsTest, ReadsNoBodyWhereNoneIsTaken) {
  for (const std::string target :
       {"GET /health", "GET /metrics", "GET /v1/models", "GET /v1/documents",
        "DELETE /v1/documents/k", "POST /v1/documents/k/pin"}) {
    TestClient client = server->connect();
    client.send(target + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9000\r\n\r\n");
    const ClientReply reply = client.read_reply();
    EXPECT_EQ(reply.status, 400) << target;
    EXPECT_EQ(reply.error_code(), "unexpected_body") << target;
  }
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

TEST_F(LimitsTest, AnswersNoPageOfAnotherSite) {
  const std::string pin = "/v1/documents/" + std::string(64, 'a') + "/pin";
  for (const char* site : {"cross-site", "same-site"}) {
    const ClientReply reply =
        server->connect().request("POST", pin, "", {{"Sec-Fetch-Site", site}});
    EXPECT_EQ(reply.status, 403) << site;
    EXPECT_EQ(reply.error_code(), "cross_site");
    EXPECT_EQ(server->connect().request("GET", "/health", "", {{"Sec-Fetch-Site", site}}).status,
              200);
  }
  for (const char* origin : {"http://evil.example", "null", "https://localhost:1"}) {
    EXPECT_EQ(server->connect().request("POST", pin, "", {{"Origin", origin}}).status, 403)
        << origin;
  }
  EXPECT_EQ(server->connect().request("POST", pin, "", {{"Origin", "http://127.0.0.1"}}).status,
            404);
  for (const char* site : {"same-origin", "none"}) {
    EXPECT_EQ(server->connect().request("POST", pin, "", {{"Sec-Fetch-Site", site}}).status, 404);
  }
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
  client.open_stream("/v1/completions", server->long_answer(3000));
  client.next_event();
  client.close();
  server->expect_idle();
  EXPECT_EQ(server->metric("anyslot_requests_total{outcome=\"aborted\"}"), aborted + 1);
  EXPECT_LT(server->metric("anyslot_generated_tokens_total"), tokens + 2900);
}

TEST_F(LimitsTest, LeavingWhileTheAnswerIsMadeCancelsIt) {
  json body = server->long_answer(3000);
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
    json body = server->long_answer(3000);
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

}  // namespace
}  // namespace anyslot::server
