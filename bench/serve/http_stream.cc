#include "http_stream.h"

#include <fmt/format.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <limits>

namespace anyslot::bench {

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using ErrorCode = boost::system::error_code;

constexpr std::string_view kScheme = "http://";

}  // namespace

Expected<HttpAddress> resolve_address(const std::string& url) {
  if (!url.starts_with(kScheme)) {
    return invalid_argument(fmt::format(
        "\"{}\" is not a URL of the form http://host:port; put a proxy before a server with TLS",
        url));
  }
  const std::string rest = url.substr(kScheme.size());
  const size_t slash = std::min(rest.find('/'), rest.size());
  HttpAddress address;
  address.host = rest.substr(0, slash);
  address.path = rest.substr(slash);
  while (address.path.ends_with('/')) address.path.pop_back();
  if (address.path.ends_with("/v1")) address.path.resize(address.path.size() - 3);
  std::string name = address.host;
  std::string port = "80";
  const size_t colon = name.rfind(':');
  if (colon != std::string::npos && name.find(']', colon) == std::string::npos) {
    port = name.substr(colon + 1);
    name.resize(colon);
  }
  if (name.starts_with('[') && name.ends_with(']')) name = name.substr(1, name.size() - 2);
  if (name.empty() || port.empty() || port.find_first_not_of("0123456789") != std::string::npos) {
    return invalid_argument(fmt::format("\"{}\" names no host and port", url));
  }
  asio::io_context io;
  asio::ip::tcp::resolver resolver(io);
  ErrorCode error;
  for (const auto& found : resolver.resolve(name, port, error)) {
    address.endpoints.push_back(found.endpoint());
  }
  if (error || address.endpoints.empty()) {
    return not_found(fmt::format("{} has no address: {}", name, error.message()));
  }
  return address;
}

HttpStream::HttpStream(asio::io_context& loop, const HttpAddress& address, const HttpCall& call,
                       Listener listener)
    : stream_(loop),
      endpoints_(address.endpoints),
      request_(http::string_to_verb(call.method), address.path + call.target, 11),
      connect_limit_(call.connect_seconds),
      listener_(std::move(listener)) {
  request_.set(http::field::host, address.host);
  request_.set(http::field::user_agent, "anyslot");
  request_.set(http::field::connection, "close");
  if (!call.api_key.empty()) {
    request_.set(http::field::authorization, "Bearer " + call.api_key);
  }
  if (!call.body.empty()) request_.set(http::field::content_type, "application/json");
  request_.body() = call.body;
  request_.prepare_payload();
  parser_.body_limit(std::numeric_limits<uint64_t>::max());
  parser_.eager(true);
}

void HttpStream::begin() {
  stream_.expires_after(std::chrono::duration_cast<std::chrono::milliseconds>(connect_limit_));
  stream_.async_connect(
      endpoints_, [self = shared_from_this()](const ErrorCode& error, const auto& /*endpoint*/) {
        if (error) return self->end(HttpEnd::kNoConnection, error.message());
        ErrorCode ignored;
        self->stream_.socket().set_option(asio::ip::tcp::no_delay(true), ignored);
        self->send();
      });
}

void HttpStream::cancel() {
  ended_ = true;
  ErrorCode ignored;
  stream_.socket().close(ignored);
}

void HttpStream::send() {
  if (ended_) return;
  http::async_write(stream_, request_, [self = shared_from_this()](const ErrorCode& error, size_t) {
    // A server that refuses may answer before it has read all.
    if (error && error != http::error::end_of_stream && error != asio::error::broken_pipe &&
        error != asio::error::connection_reset) {
      return self->end(HttpEnd::kClosed, error.message());
    }
    self->stream_.expires_never();
    self->read_head();
  });
}

void HttpStream::read_head() {
  if (ended_) return;
  http::async_read_header(
      stream_, buffer_, parser_, [self = shared_from_this()](const ErrorCode& error, size_t) {
        if (self->ended_) return;
        if (error) return self->end(HttpEnd::kClosed, error.message());
        const auto type = self->parser_.get()[http::field::content_type];
        self->listener_.on_head(self->parser_.get().result_int(), {type.data(), type.size()});
        self->take_body();
        self->read_more();
      });
}

void HttpStream::read_more() {
  if (ended_) return;
  if (parser_.is_done()) return end(HttpEnd::kWhole, "");
  http::async_read_some(stream_, buffer_, parser_,
                        [self = shared_from_this()](const ErrorCode& error, size_t) {
                          if (self->ended_) return;
                          self->take_body();
                          if (error) return self->end(HttpEnd::kClosed, error.message());
                          self->read_more();
                        });
}

void HttpStream::take_body() {
  const std::string bytes = std::exchange(parser_.get().body(), {});
  if (!bytes.empty() && !ended_) listener_.on_body(bytes);
}

void HttpStream::end(HttpEnd how, const std::string& why) {
  if (ended_) return;
  cancel();
  listener_.on_end(how, why);
}

Expected<HttpReply> call_and_wait(const HttpAddress& address, const HttpCall& call,
                                  double seconds) {
  asio::io_context loop;
  HttpReply reply;
  Status status(StatusCode::kUnavailable,
                fmt::format("no answer from {} within {:.0f} s", address.host, seconds));
  const auto stream = std::make_shared<HttpStream>(
      loop, address, call,
      HttpStream::Listener{[&](unsigned code, std::string_view) { reply.status = code; },
                           [&](std::string_view bytes) { reply.body += bytes; },
                           [&](HttpEnd end, const std::string& why) {
                             status = end == HttpEnd::kWhole
                                          ? Status()
                                          : Status(StatusCode::kUnavailable,
                                                   fmt::format("no answer from {}: {}",
                                                               address.host, why));
                           }});
  stream->begin();
  loop.run_for(std::chrono::milliseconds(static_cast<int64_t>(seconds * 1e3)));
  stream->cancel();
  if (!status.ok()) return status;
  return reply;
}

}  // namespace anyslot::bench
