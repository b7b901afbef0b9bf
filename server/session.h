#pragma once

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "errors.h"
#include "exchange.h"
#include "http_exchange.h"
#include "log.h"
#include "net.h"
#include "server_limits.h"

namespace anyslot::server {

/// A client's connection: reads requests one after the other within the limits, notices when the
/// client leaves, and writes what the exchange of the current request has. What is thrown on its
/// behalf ends this connection and no other. I/O thread only.
class Session : public Wire, public std::enable_shared_from_this<Session> {
 public:
  /// `socket` is of `io`. `ended` is called once when the connection is closed.
  Session(std::shared_ptr<asio::io_context> io, Tcp::socket socket, RequestHandler& handler,
          const Limits& limits, const ByteBudget& bodies, Logger log,
          std::function<void(Session*)> ended);

  void start();
  /// Closes the connection as soon as it has no request.
  void shut_down();
  void close();

  void write(std::string bytes, std::function<void()> done) override;
  void finished(bool keep) override;
  void drop(std::string_view reason) override;

 private:
  enum class Phase { kIdle, kHeader, kContinuing, kBody, kAnswering, kLingering, kClosed };
  using Parser = http::request_parser<http::string_body>;

  void await_request();
  void read_more();
  void proceed();
  void begin_request();
  void parse();
  void take_header();
  bool skip_body();
  void read_body();
  bool framing_too_large() const;
  bool charge_body();
  void take_request();
  void refuse(const ApiError& refusal);
  Exchange& begin_exchange(bool keep_alive);
  std::shared_ptr<ResponseSink> sink() const;
  void watch_full_buffer();
  void write_some();
  void linger();

  /// Runs `work`; what it throws ends this connection, with an answer where one is due.
  template <typename Work>
  void guard(Work work);
  void fail(const std::exception& error);

  void set_deadline(std::chrono::milliseconds timeout);
  void on_deadline();
  size_t unacknowledged() const;

  std::shared_ptr<asio::io_context> io_;
  Tcp::socket socket_;
  RequestHandler& handler_;
  const Limits& limits_;
  const ByteBudget& bodies_;
  Logger log_;
  std::function<void(Session*)> ended_;

  Phase phase_ = Phase::kIdle;
  bool shutting_down_ = false;
  bool body_unread_ = false;  // of the request that is being refused
  bool reading_ = false;
  std::array<char, size_t{16} << 10> incoming_;  // of the read that is under way
  boost::beast::flat_buffer buffer_;             // has come and is not parsed yet
  std::optional<Parser> parser_;
  uint64_t raw_body_bytes_ = 0;  // with the framing of chunks
  RequestHead head_;
  Clock::time_point arrived_;
  ByteBudget::Charge charge_;                     // of the body that is being read
  std::shared_ptr<ActiveRequests::Place> place_;  // of the request that is being read
  std::shared_ptr<Exchange> exchange_;            // of the current request

  std::string writing_;
  size_t written_ = 0;                // bytes of writing_ that the kernel has taken
  size_t unsent_before_ = 0;          // unacknowledged() when the deadline was set
  Clock::time_point least_rate_end_;  // when a client that reads as it must has taken writing_
  std::function<void()> write_done_;

  asio::steady_timer deadline_;
  uint64_t deadline_number_ = 0;  // tells an old deadline that fires late
  asio::steady_timer full_watch_;
};

}  // namespace anyslot::server
