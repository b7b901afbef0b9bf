#include "http_server.h"

#include <algorithm>
#include <exception>
#include <utility>

namespace anyslot::server {

namespace {

constexpr std::chrono::milliseconds kRetryAccept{100};
constexpr std::chrono::milliseconds kWarnEvery{1000};

Status listen_error(const std::string& host, uint16_t port, const ErrorCode& error) {
  return failed_precondition("cannot listen on " + host + " port " + std::to_string(port) + ": " +
                             error.message() + "; choose another with --host and --port");
}

/// Resolvers take "", "*" and "0" for all addresses. Whoever means that says so.
Status check_host(const std::string& host, const Tcp::endpoint& endpoint) {
  ErrorCode not_literal;
  asio::ip::make_address(host, not_literal);
  if (!endpoint.address().is_unspecified() || !not_literal) return {};
  return invalid_argument("--host \"" + loggable(host) +
                          "\" is no address; use 127.0.0.1 for this machine only, 0.0.0.0 or :: "
                          "for all of its addresses");
}

}  // namespace

HttpServer::HttpServer(std::shared_ptr<asio::io_context> io, RequestHandler& handler,
                       const Limits& limits, Logger log)
    : io_(std::move(io)),
      handler_(handler),
      limits_(limits),
      log_(std::move(log)),
      bodies_(std::max(limits.max_bodies_bytes, limits.max_body_bytes)),
      acceptor_(*io_),
      retry_(*io_) {}

Status HttpServer::listen(const std::string& host, uint16_t port) {
  ErrorCode error;
  Tcp::resolver resolver(*io_);
  const auto found = resolver.resolve(
      host, std::to_string(port), Tcp::resolver::passive | Tcp::resolver::numeric_service, error);
  if (error || found.empty()) {
    return invalid_argument("--host " + loggable(host) + ": " + error.message() +
                            "; use an address or a name of this machine");
  }
  const Tcp::endpoint endpoint = found.begin()->endpoint();
  if (Status status = check_host(host, endpoint); !status.ok()) return status;
  acceptor_.open(endpoint.protocol(), error);
  if (!error) acceptor_.set_option(Tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor_.bind(endpoint, error);
  if (!error) acceptor_.listen(Tcp::acceptor::max_listen_connections, error);
  if (!error) port_ = acceptor_.local_endpoint(error).port();
  if (error) return listen_error(host, port, error);
  on_loopback_ = endpoint.address().is_loopback();
  accept();
  return {};
}

void HttpServer::accept() {
  if (accepting_ || !acceptor_.is_open() ||
      sessions_.size() >= static_cast<size_t>(limits_.max_connections)) {
    return;
  }
  acceptor_.async_accept([this](const ErrorCode& error, Tcp::socket socket) {
    accepting_ = false;
    if (!acceptor_.is_open()) return;
    if (error) return accept_later(error.message());
    try {
      add(std::move(socket));
    } catch (const std::exception& failure) {
      return accept_later(failure.what());
    }
    accept();
  });
  accepting_ = true;
}

/// No more connections can be had for now, for want of descriptors or memory.
void HttpServer::accept_later(const std::string& why) {
  if (const auto now = Clock::now(); now >= next_warning_) {
    log_->warn("cannot accept a connection: {}", why);
    next_warning_ = now + kWarnEvery;
  }
  retry_.expires_after(kRetryAccept);
  retry_.async_wait([this](const ErrorCode& cancelled) {
    if (!cancelled) accept();
  });
}

void HttpServer::add(Tcp::socket socket) {
  const auto session = std::make_shared<Session>(io_, std::move(socket), handler_, limits_, bodies_,
                                                 log_, [this](Session* ended) { remove(ended); });
  sessions_.emplace(session.get(), session);
  session->start();
}

void HttpServer::remove(Session* session) {
  sessions_.erase(session);
  accept();
  if (sessions_.empty() && done_) std::exchange(done_, {})();
}

void HttpServer::shut_down(std::function<void()> done) {
  ErrorCode ignored;
  acceptor_.close(ignored);
  retry_.cancel();
  done_ = std::move(done);
  const auto sessions = sessions_;  // some end at once
  for (const auto& [key, session] : sessions) session->shut_down();
  if (sessions_.empty() && done_) std::exchange(done_, {})();
}

void HttpServer::close_all() {
  const auto sessions = sessions_;
  for (const auto& [key, session] : sessions) session->close();
}

}  // namespace anyslot::server
