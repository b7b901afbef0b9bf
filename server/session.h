#pragma once

#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "exchange.h"
#include "http_exchange.h"
#include "log.h"
#include "net.h"
#include "server_limits.h"

namespace anyslot::server {

/// A client's connection: reads requests one after the other within the limits, notices when the
/// client leaves, and writes what the exchange of the current request has. I/O thread only.
class Session : public Wire, public std::enable_shared_from_this<Session> {
 public:
  /// `ended` is called once when the connection is closed.
  Session(Tcp::socket socket, RequestHandler& handler, const Limits& limits, Logger log,
          std::function<void(Session*)> ended);

  void start();
  /// Closes the connection as soon as it has no request.
  void shut_down();
  void close();

  void write(std::string bytes, std::function<void()> done) override;
  void finished(bool keep) override;
  void drop(std::string_view reason) override;

 private:
  enum class Phase { kIdle, kHeader, kBody, kAnswering, kLingering, kClosed };

  void await_request();
  void read_header();
  void take_header();
  void read_body();
  void take_request();
  void refuse_read(const ErrorCode& error);
  Exchange& begin_exchange(bool keep_alive);
  void watch_client();
  bool client_has_left();
  void linger();
  void discard();

  void set_deadline(std::chrono::milliseconds timeout);
  void on_deadline();

  Tcp::socket socket_;
  RequestHandler& handler_;
  const Limits& limits_;
  Logger log_;
  std::function<void(Session*)> ended_;

  Phase phase_ = Phase::kIdle;
  bool shutting_down_ = false;
  bool timed_out_ = false;
  bool body_unread_ = false;  // of the request that is being refused
  boost::beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  RequestHead head_;
  Clock::time_point arrived_;
  std::shared_ptr<Exchange> exchange_;  // of the current request
  std::string writing_;
  asio::steady_timer deadline_;
  uint64_t deadline_number_ = 0;  // tells an old deadline that fires late
};

}  // namespace anyslot::server
