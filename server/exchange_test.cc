#include "exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "errors.h"

namespace anyslot::server {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class FakeWire : public Wire {
 public:
  void write(std::string bytes, std::function<void()> done) override {
    if (broken) throw std::runtime_error("no memory");
    sent += bytes;
    done_ = std::move(done);
  }
  void finished(bool keep) override { kept = keep; }
  void drop(std::string_view reason) override {
    dropped = reason;
    if (exchange != nullptr) exchange->detach();
  }
  /// The kernel takes what was written.
  void take() { std::exchange(done_, {})(); }
  bool busy() const { return static_cast<bool>(done_); }

  bool broken = false;
  std::string sent;
  std::string dropped;
  std::optional<bool> kept;
  Exchange* exchange = nullptr;

 private:
  std::function<void()> done_;
};

class FakeHandler : public RequestHandler {
 public:
  Admission admit(const RequestHead& /*head*/) override { return {}; }
  void handle(HttpRequest /*request*/, std::shared_ptr<ResponseSink> /*sink*/) override {}
  std::string error_body(const RequestHead& /*head*/, const ApiError& error) const override {
    return openai_error_body(error);
  }
  void answered(const RequestHead& /*head*/, int status) override { statuses.push_back(status); }
  std::vector<int> statuses;
};

class ExchangeTest : public ::testing::Test {
 protected:
  std::shared_ptr<Exchange> make(Exchange::Setup setup) {
    auto exchange = std::make_shared<Exchange>(wire_, handler_, limits_, std::move(setup));
    wire_.exchange = exchange.get();
    return exchange;
  }
  static RequestHead head(const std::string& method = "GET") { return {method, "/x", ""}; }

  Limits limits_;
  FakeHandler handler_;
  FakeWire wire_;
};

TEST_F(ExchangeTest, SendsAReply) {
  const auto exchange = make({head(), true, true});
  exchange->reply({404, "{}", "application/json", {{"Retry-After", "1"}}});
  EXPECT_THAT(wire_.sent, StartsWith("HTTP/1.1 404 Not Found\r\n"));
  EXPECT_THAT(wire_.sent, HasSubstr("Content-Length: 2\r\n"));
  EXPECT_THAT(wire_.sent, HasSubstr("Retry-After: 1\r\n"));
  EXPECT_TRUE(wire_.sent.ends_with("\r\n\r\n{}"));
  EXPECT_FALSE(wire_.kept.has_value());
  wire_.take();
  EXPECT_EQ(wire_.kept, true);
  EXPECT_EQ(handler_.statuses, std::vector<int>{404});
}

TEST_F(ExchangeTest, LeavesOutTheBodyForHead) {
  make({head("HEAD"), true, true})->reply({405, "{}", "application/json", {}});
  EXPECT_TRUE(wire_.sent.ends_with("\r\n\r\n"));
}

TEST_F(ExchangeTest, SendsEventsInChunks) {
  const auto exchange = make({head(), true, true});
  exchange->begin_events();
  EXPECT_THAT(wire_.sent, HasSubstr("Transfer-Encoding: chunked"));
  EXPECT_THAT(wire_.sent, HasSubstr("text/event-stream"));
  wire_.sent.clear();
  exchange->send_event("", "a");
  exchange->send_event("", "0123456789");
  EXPECT_EQ(wire_.sent, "") << "one piece at a time";
  wire_.take();
  EXPECT_EQ(wire_.sent, "9\r\ndata: a\n\n\r\n12\r\ndata: 0123456789\n\n\r\n");
  exchange->end_events();
  wire_.take();
  EXPECT_TRUE(wire_.sent.ends_with("0\r\n\r\n"));
  EXPECT_FALSE(wire_.kept.has_value());
  wire_.take();
  EXPECT_EQ(wire_.kept, true);
}

TEST_F(ExchangeTest, NamesEventsThatHaveAType) {
  const auto exchange = make({head(), false, true});
  exchange->begin_events();
  wire_.take();
  wire_.sent.clear();
  exchange->send_event("ping", "a");
  EXPECT_EQ(wire_.sent, "event: ping\ndata: a\n\n");
}

TEST_F(ExchangeTest, EndsEventsForOldClientsWithTheConnection) {
  const auto exchange = make({head(), false, true});
  exchange->begin_events();
  wire_.take();
  wire_.sent.clear();
  exchange->send_event("", "a");
  exchange->end_events();
  EXPECT_EQ(wire_.sent, "data: a\n\n");
  wire_.take();
  EXPECT_EQ(wire_.kept, false);
}

TEST_F(ExchangeTest, DropsAClientThatDoesNotRead) {
  limits_.max_unsent_bytes = 1000;
  const auto exchange = make({head(), true, true});
  bool gone = false;
  exchange->on_gone([&gone] { gone = true; });
  exchange->begin_events();
  int events = 0;
  while (!gone && events < 1000) {
    exchange->send_event("", std::string(100, 'x'));
    ++events;
  }
  EXPECT_TRUE(gone);
  EXPECT_LT(events, 12);
  EXPECT_NE(wire_.dropped, "");
  const std::string sent = wire_.sent;
  exchange->send_event("", "more");
  exchange->end_events();
  EXPECT_EQ(wire_.sent, sent);
}

TEST_F(ExchangeTest, AnswersForThoseWhoGiveUp) {
  const auto fresh = make({head(), true, true});
  fresh->abandon();
  EXPECT_THAT(wire_.sent, StartsWith("HTTP/1.1 503"));
  wire_.take();
  EXPECT_EQ(wire_.kept, true);
  fresh->abandon();
  EXPECT_EQ(wire_.dropped, "") << "it was answered";

  const auto begun = make({head(), true, true});
  begun->begin_events();
  begun->abandon();
  EXPECT_NE(wire_.dropped, "");
}

TEST_F(ExchangeTest, SendsNoEventsBeforeTheirHead) {
  const auto exchange = make({head(), true, true});
  exchange->send_event("", "a");
  exchange->end_events();
  EXPECT_EQ(wire_.sent, "");
  exchange->reply({});
  EXPECT_THAT(wire_.sent, StartsWith("HTTP/1.1 200"));
}

TEST_F(ExchangeTest, HoldsItsPlaceUntilAllIsWrittenOrTheClientIsGone) {
  ActiveRequests active(1);
  auto exchange = make({head(), true, true, active.enter()});
  exchange->reply({});
  EXPECT_TRUE(active.full());
  wire_.take();
  EXPECT_FALSE(active.full());

  exchange = make({head(), true, true, active.enter()});
  exchange->begin_events();
  EXPECT_TRUE(active.full());
  exchange->detach();
  EXPECT_FALSE(active.full());
}

TEST_F(ExchangeTest, EndsAConnectionThatCannotBeWritten) {
  const auto exchange = make({head(), true, true});
  wire_.broken = true;
  EXPECT_NO_THROW(exchange->begin_events());
  EXPECT_EQ(wire_.dropped, "no memory");
}

TEST_F(ExchangeTest, TellsThatTheClientIsGoneOnce) {
  const auto exchange = make({head(), true, true});
  int calls = 0;
  exchange->on_gone([&calls] { ++calls; });
  exchange->detach();
  exchange->detach();
  EXPECT_EQ(calls, 1);
  exchange->on_gone([&calls] { ++calls; });
  EXPECT_EQ(calls, 2) << "who asks later must know, too";
  exchange->reply({});
  EXPECT_EQ(wire_.sent, "");
}

}  // namespace
}  // namespace anyslot::server
