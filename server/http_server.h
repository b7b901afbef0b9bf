#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
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
  HttpServer(asio::io_context& io, RequestHandler& handler, const Limits& limits, Logger log);

  /// Port 0 picks a free one. Fails with kInvalidArgument for a host that is none of this machine,
  /// with kFailedPrecondition when the port is taken.
  Status listen(const std::string& host, uint16_t port);
  uint16_t port() const { return port_; }

  /// Takes no more connections; those without a request are closed now, the others after it.
  /// `done` is called once all are closed.
  void shut_down(std::function<void()> done);
  /// Closes what is left.
  void close_all();

 private:
  void accept();
  void add(Tcp::socket socket);
  void remove(Session* session);

  asio::io_context& io_;
  RequestHandler& handler_;
  const Limits& limits_;
  Logger log_;
  Tcp::acceptor acceptor_;
  asio::steady_timer retry_;
  uint16_t port_ = 0;
  bool accepting_ = false;  // an accept is under way
  std::unordered_map<Session*, std::shared_ptr<Session>> sessions_;
  std::function<void()> done_;
};

}  // namespace anyslot::server
