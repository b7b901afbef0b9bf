// Connections with handlers that fail, and clients that are slow or leave.
#include "session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <sys/resource.h>

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <future>
#include <mutex>
#include <new>
#include <sstream>
#include <thread>

#include "http_server.h"
#include "test_client.h"

namespace anyslot::server {
namespace {

using ::testing::HasSubstr;
using Handling = std::function<void(HttpRequest, std::shared_ptr<ResponseSink>)>;

class FakeHandler : public RequestHandler {
 public:
  Admission admit(const RequestHead& head) override {
    if (head.target == "/throw-early") throw std::bad_alloc();
    return {std::nullopt, active.enter()};
  }
  void handle(HttpRequest request, std::shared_ptr<ResponseSink> sink) override {
    if (request.head.target == "/ok") return sink->reply({});
    handling(std::move(request), std::move(sink));
  }
  std::string error_body(const RequestHead& /*head*/, const ApiError& error) const override {
    return openai_error_body(error);
  }
  void answered(const RequestHead& /*head*/, int /*status*/) override {}

  Handling handling;
  ActiveRequests active{4};
};

/// A server with a thread, over a handler that the test gives.
class SessionTest : public ::testing::Test {
 protected:
  void listen(Handling handling) {
    handler_.handling = std::move(handling);
    http_.emplace(io_, handler_, limits_, log_);
    const Status status = http_->listen("127.0.0.1", 0);
    ASSERT_TRUE(status.ok()) << status.message();
    thread_ = std::thread([this] { io_->run(); });
  }
  void TearDown() override {
    if (thread_.joinable()) {
      EXPECT_EQ(connect().get("/ok").status, 200) << "the server goes on";
      asio::post(*io_, [this] {
        http_->shut_down([this] { io_->stop(); });
        http_->close_all();
      });
      thread_.join();
    }
    if (!http_) return;
    io_->restart();
    io_->poll();  // what was cancelled holds the loop that it is in
  }
  TestClient connect() const { return TestClient(http_->port()); }

  Limits limits_;
  FakeHandler handler_;
  std::ostringstream log_text_;
  Logger log_ = std::make_shared<spdlog::logger>(
      "test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log_text_));
  std::shared_ptr<asio::io_context> io_ = std::make_shared<asio::io_context>(1);
  std::optional<HttpServer> http_;
  std::thread thread_;
};

TEST_F(SessionTest, AnswersForAHandlerThatThrows) {
  listen([](const HttpRequest& request, const std::shared_ptr<ResponseSink>& sink) {
    if (request.head.target == "/memory") throw std::bad_alloc();
    if (request.head.target == "/begun") sink->begin_events();
    throw std::runtime_error("broken");
  });
  const ClientReply memory = connect().get("/memory");
  EXPECT_EQ(memory.status, 503);
  EXPECT_EQ(memory.error_code(), "out_of_memory");
  EXPECT_EQ(connect().get("/throw-early").status, 503);
  EXPECT_EQ(connect().get("/other").status, 500);
  TestClient begun = connect();
  begun.send_request("GET", "/begun", "", {});
  EXPECT_EQ(begun.read_reply().status, 200);
  EXPECT_ANY_THROW(begun.next_event()) << "closed without the end of the events";
}

TEST_F(SessionTest, AnswersWhenItsReadingThrows) {
  limits_.max_header_bytes = 1 << 20;  // more than a field can be in the parser
  listen({});
  TestClient client = connect();
  client.send("GET /ok HTTP/1.1\r\nHost: x\r\nX: " + std::string(70'000, 'x') + "\r\n\r\n");
  EXPECT_EQ(client.read_reply().status, 500);
  EXPECT_EQ(client.read_to_end(), "");
}

TEST_F(SessionTest, AnswersForAWorkerThatLetsGoOfARequest) {
  std::mutex mutex;
  std::thread worker;
  listen([&](const HttpRequest& request, std::shared_ptr<ResponseSink> sink) {
    if (request.head.target == "/begun") sink->begin_events();
    const std::lock_guard lock(mutex);
    if (worker.joinable()) worker.join();
    worker = std::thread([held = std::move(sink)]() mutable { held.reset(); });
  });
  TestClient client = connect();
  EXPECT_EQ(client.get("/lost").status, 503);
  EXPECT_EQ(client.get("/ok").status, 200) << "the connection goes on";
  client.send_request("GET", "/begun", "", {});
  EXPECT_EQ(client.read_reply().status, 200);
  EXPECT_ANY_THROW(client.next_event());
  const std::lock_guard lock(mutex);
  worker.join();
}

TEST_F(SessionTest, NoticesThatAClientLeavesThoughItSentMore) {
  std::promise<void> gone;
  std::shared_ptr<ResponseSink> kept;
  std::promise<void> taken;
  listen([&](const HttpRequest&, std::shared_ptr<ResponseSink> sink) {
    sink->on_gone([&gone] { gone.set_value(); });
    kept = std::move(sink);
    taken.set_value();
  });
  const std::string request = "GET /long HTTP/1.1\r\nHost: x\r\n\r\n";
  for (const std::string& more : {std::string("\r\n"), request, std::string(50'000, 'x')}) {
    gone = {};
    taken = {};
    TestClient client = connect();
    client.send(request + more);
    taken.get_future().wait();
    client.close();
    EXPECT_EQ(gone.get_future().wait_for(std::chrono::seconds(60)), std::future_status::ready)
        << more.size();
  }
}

TEST_F(SessionTest, KeepsWhatIsPipelinedWhileItAnswers) {
  std::shared_ptr<ResponseSink> kept;
  std::promise<void> taken;
  listen([&](const HttpRequest&, std::shared_ptr<ResponseSink> sink) {
    kept = std::move(sink);
    taken.set_value();
  });
  TestClient client = connect();
  std::string requests;
  const std::string next =
      "GET /ok HTTP/1.1\r\nHost: x\r\nX: " + std::string(1000, 'x') + "\r\n\r\n";
  for (int i = 0; i < 200; ++i) requests += next;  // more than is read ahead
  client.send("GET /long HTTP/1.1\r\nHost: x\r\n\r\n" + requests);
  taken.get_future().wait();
  asio::post(*io_, [&kept] { std::exchange(kept, nullptr)->reply({}); });
  for (int i = 0; i < 201; ++i) EXPECT_EQ(client.read_reply().status, 200);
}

TEST_F(SessionTest, GivesASlowReaderTheTimeItNeeds) {
  const std::string text(8 << 20, 'x');
  limits_.write_timeout = std::chrono::milliseconds(300);
  limits_.send_buffer_bytes = 64 << 10;
  listen([&text](const HttpRequest&, const std::shared_ptr<ResponseSink>& sink) {
    sink->reply({200, text, "text/plain", {}});
  });
  TestClient client = connect();
  client.socket().set_option(asio::socket_base::receive_buffer_size(64 << 10));
  client.send_request("GET", "/", "", {});
  std::string read;
  std::string piece(64 << 10, '\0');
  const auto begin = Clock::now();
  auto next = begin;
  while (Clock::now() - begin < 4 * limits_.write_timeout) {
    std::this_thread::sleep_until(next += std::chrono::milliseconds(30));  // the reader's pace
    read.append(piece, 0, client.socket().read_some(asio::buffer(piece)));
  }
  ASSERT_LT(read.size(), text.size()) << "it has to last longer than the limit";
  const size_t size = read.find("\r\n\r\n") + 4 + text.size();
  while (read.size() < size) read.append(piece, 0, client.socket().read_some(asio::buffer(piece)));
  EXPECT_EQ(read.size(), size);
}

TEST_F(SessionTest, DropsAReaderThatTakesNothing) {
  limits_.write_timeout = std::chrono::milliseconds(100);
  std::promise<void> gone;
  listen([&gone](const HttpRequest&, const std::shared_ptr<ResponseSink>& sink) {
    sink->on_gone([&gone] { gone.set_value(); });
    sink->reply({200, std::string(32 << 20, 'x'), "text/plain", {}});
  });
  TestClient client = connect();
  client.send_request("GET", "/", "", {});
  EXPECT_EQ(gone.get_future().wait_for(std::chrono::seconds(60)), std::future_status::ready);
}

TEST_F(SessionTest, DropsAReaderThatDripsForLongerThanItsReplyIsWorth) {
  limits_.write_timeout = std::chrono::milliseconds(200);
  limits_.least_write_rate = 64 << 20;  // half a second for the reply, and the timeout
  limits_.send_buffer_bytes = 8 << 10;
  std::promise<void> gone;
  listen([&gone](const HttpRequest&, const std::shared_ptr<ResponseSink>& sink) {
    sink->on_gone([&gone] { gone.set_value(); });
    sink->reply({200, std::string(32 << 20, 'x'), "text/plain", {}});
  });
  TestClient client = connect();
  client.socket().set_option(asio::socket_base::receive_buffer_size(4 << 10));
  client.send_request("GET", "/", "", {});
  std::string piece(4 << 10, '\0');
  auto left = gone.get_future();
  boost::system::error_code error;
  while (!error && left.wait_for(std::chrono::milliseconds(20)) != std::future_status::ready) {
    client.socket().read_some(asio::buffer(piece), error);
  }
  EXPECT_EQ(left.wait_for(std::chrono::seconds(60)), std::future_status::ready);
  EXPECT_EQ(handler_.active.size(), 0U);
}

TEST_F(SessionTest, BoundsTheBodiesOfAllRequestsTogether) {
  limits_.max_body_bytes = 10'000;
  limits_.max_bodies_bytes = 15'000;
  std::promise<void> taken;
  std::shared_ptr<ResponseSink> kept;
  HttpRequest held;
  listen([&](HttpRequest request, std::shared_ptr<ResponseSink> sink) {
    if (request.head.target != "/hold") return sink->reply({});
    held = std::move(request);
    kept = std::move(sink);
    taken.set_value();
  });
  const std::string body(8'000, 'x');
  TestClient holding = connect();
  holding.send_request("POST", "/hold", body, {});
  taken.get_future().wait();
  const ClientReply refused = connect().request("POST", "/other", body, {});
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.headers.at("retry-after"), "1");
  EXPECT_EQ(connect().request("POST", "/other", "small", {}).status, 200);
  held.body.clear();
  EXPECT_EQ(connect().request("POST", "/other", body, {}).status, 200);
  asio::post(*io_, [&kept] { std::exchange(kept, nullptr)->reply({}); });
  EXPECT_EQ(holding.read_reply().status, 200);
}

TEST_F(SessionTest, AnswersWhatIsHalfSentWhenItShutsDown) {
  listen({});
  TestClient header = connect();
  header.send("GET /ok HTTP/1.1\r\nHost");
  TestClient body = connect();
  body.send("POST /ok HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nab");
  ASSERT_EQ(connect().get("/ok").status, 200);  // so that what came before has been read
  std::promise<void> ended;
  asio::post(*io_, [&] { http_->shut_down([&] { ended.set_value(); }); });
  EXPECT_EQ(header.read_reply().status, 503);
  EXPECT_EQ(body.read_reply().status, 503);
  header.close();
  body.close();
  EXPECT_EQ(ended.get_future().wait_for(std::chrono::seconds(60)), std::future_status::ready);
  asio::post(*io_, [this] { io_->stop(); });
  thread_.join();
}

TEST_F(SessionTest, SaysSeldomThatItCannotAccept) {
  http_.emplace(io_, handler_, limits_, log_);
  const Status status = http_->listen("127.0.0.1", 0);
  ASSERT_TRUE(status.ok()) << status.message();
  TestClient client = connect();
  client.send("GET /ok HTTP/1.1\r\nHost: x\r\n\r\n");
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const rlimit none{3, before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &none);
  io_->run_for(std::chrono::milliseconds(550));
  setrlimit(RLIMIT_NOFILE, &before);
  const std::string text = log_text_.str();
  const size_t first = text.find("cannot accept");
  EXPECT_NE(first, std::string::npos);
  EXPECT_EQ(text.find("cannot accept", first + 1), std::string::npos) << text;
  thread_ = std::thread([this] { io_->run(); });
  EXPECT_EQ(client.read_reply().status, 200) << "accepted once there are descriptors";
}

TEST_F(SessionTest, ListensOnAllAddressesOnlyWhenThatIsSaid) {
  for (const char* host : {"", "*", "0", "0x0"}) {
    const Status status = HttpServer(io_, handler_, limits_, log_).listen(host, 0);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << host;
    EXPECT_THAT(status.message(), HasSubstr("127.0.0.1")) << host;
  }
  HttpServer all(io_, handler_, limits_, log_);
  EXPECT_TRUE(all.listen("0.0.0.0", 0).ok());
  EXPECT_FALSE(all.on_loopback());
  HttpServer own(io_, handler_, limits_, log_);
  EXPECT_TRUE(own.listen("localhost", 0).ok());
  EXPECT_TRUE(own.on_loopback());
}

}  // namespace
}  // namespace anyslot::server
