#include "http_server.h"

#include <utility>
#include <vector>

namespace anyslot::server {

namespace {

constexpr std::chrono::milliseconds kRetryAccept{100};

Status listen_error(const std::string& host, uint16_t port, const ErrorCode& error) {
  return failed_precondition("cannot listen on " + host + " port " + std::to_string(port) + ": " +
                             error.message() + "; choose another with --host and --port");
}

}  // namespace

HttpServer::HttpServer(asio::io_context& io, RequestHandler& handler, const Limits& limits,
                       Logger log)
    : io_(io),
      handler_(handler),
      limits_(limits),
      log_(std::move(log)),
      acceptor_(io),
      retry_(io) {}

Status HttpServer::listen(const std::string& host, uint16_t port) {
  ErrorCode error;
  Tcp::resolver resolver(io_);
  const auto found = resolver.resolve(
      host, std::to_string(port), Tcp::resolver::passive | Tcp::resolver::numeric_service, error);
  if (error || found.empty()) {
    return invalid_argument("--host " + host + ": " + error.message());
  }
  const Tcp::endpoint endpoint = found.begin()->endpoint();
  acceptor_.open(endpoint.protocol(), error);
  if (!error) acceptor_.set_option(Tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor_.bind(endpoint, error);
  if (!error) acceptor_.listen(Tcp::acceptor::max_listen_connections, error);
  if (!error) port_ = acceptor_.local_endpoint(error).port();
  if (error) return listen_error(host, port, error);
  accept();
  return {};
}

void HttpServer::accept() {
  if (accepting_ || !acceptor_.is_open() ||
      sessions_.size() >= static_cast<size_t>(limits_.max_connections)) {
    return;
  }
  accepting_ = true;
  acceptor_.async_accept([this](const ErrorCode& error, Tcp::socket socket) {
    accepting_ = false;
    if (!acceptor_.is_open()) return;
    if (!error) {
      add(std::move(socket));
      return accept();
    }
    log_->warn("cannot accept a connection: {}", error.message());
    retry_.expires_after(kRetryAccept);
    retry_.async_wait([this](const ErrorCode& cancelled) {
      if (!cancelled) accept();
    });
  });
}

void HttpServer::add(Tcp::socket socket) {
  const auto session = std::make_shared<Session>(std::move(socket), handler_, limits_, log_,
                                                 [this](Session* ended) { remove(ended); });
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
