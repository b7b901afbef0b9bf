#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>

#include "anyslot/status.h"
#include "http_exchange.h"
#include "log.h"
#include "net.h"
#include "server_limits.h"
#include "session.h"

namespace anyslot::server {

/// Listens and owns the connections. I/O thread only.
class HttpServer {
 public:
  /// `handler` and `limits` must outlive this.
  HttpServer(std::shared_ptr<asio::io_context> io, RequestHandler& handler, const Limits& limits,
             Logger log);

  /// Port 0 picks a free one. Fails with kInvalidArgument for a host that is none of this machine,
  /// or means all of its addresses without saying 0.0.0.0 or ::, with kFailedPrecondition when the
  /// port is taken.
  Status listen(const std::string& host, uint16_t port);
  uint16_t port() const { return port_; }
  /// Whether only this machine reaches it.
  bool on_loopback() const { return on_loopback_; }

  /// Takes no more connections; those without a request are closed now, the others after it.
  /// `done` is called once all are closed.
  void shut_down(std::function<void()> done);
  /// Closes what is left.
  void close_all();

 private:
  void accept();
  void accept_later(const std::string& why);
  void add(Tcp::socket socket);
  void remove(Session* session);

  std::shared_ptr<asio::io_context> io_;
  RequestHandler& handler_;
  const Limits& limits_;
  Logger log_;
  ByteBudget bodies_;
  Tcp::acceptor acceptor_;
  asio::steady_timer retry_;
  Clock::time_point next_warning_;  // of what hinders accepting, which may last
  uint16_t port_ = 0;
  bool on_loopback_ = false;
  bool accepting_ = false;  // an accept is under way
  std::unordered_map<Session*, std::shared_ptr<Session>> sessions_;
  std::function<void()> done_;
};

}  // namespace anyslot::server
