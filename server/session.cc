#include "session.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/read.hpp>
#include <string>
#include <utility>

#include "errors.h"

namespace anyslot::server {

namespace {

constexpr size_t kReadBytes = 16 << 10;
constexpr size_t kWriteBytes = 64 << 10;
constexpr std::chrono::milliseconds kLingerTimeout{2000};
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

ApiError read_error(const ErrorCode& error, const Limits& limits) {
  if (error == http::error::body_limit) {
    return {413,
            "the body is larger than " + std::to_string(limits.max_body_bytes) +
                " bytes (--max-body); send less",
            "", "body_too_large"};
  }
  if (error == http::error::header_limit || error == http::error::buffer_overflow) {
    return {431, "the header is larger than " + std::to_string(limits.max_header_bytes) + " bytes",
            "", "header_too_large"};
  }
  return {400, "malformed HTTP request: " + error.message(), "", "malformed_request"};
}

}  // namespace

Session::Session(Tcp::socket socket, RequestHandler& handler, const Limits& limits, Logger log,
                 std::function<void(Session*)> ended)
    : socket_(std::move(socket)),
      handler_(handler),
      limits_(limits),
      log_(std::move(log)),
      ended_(std::move(ended)),
      deadline_(socket_.get_executor()) {}

void Session::start() {
  ErrorCode ignored;
  socket_.set_option(Tcp::no_delay(true), ignored);
  socket_.set_option(asio::socket_base::send_buffer_size(limits_.send_buffer_bytes), ignored);
  socket_.non_blocking(true, ignored);
  await_request();
}

void Session::shut_down() {
  shutting_down_ = true;
  if (phase_ == Phase::kIdle) return close();
  if (exchange_ != nullptr) exchange_->close_after();
}

void Session::await_request() {
  if (shutting_down_) return close();
  parser_.emplace();
  parser_->header_limit(static_cast<uint32_t>(limits_.max_header_bytes));
  parser_->body_limit(limits_.max_body_bytes);
  if (buffer_.size() > 0) return read_header();
  phase_ = Phase::kIdle;
  set_deadline(limits_.idle_timeout);
  socket_.async_read_some(buffer_.prepare(kReadBytes),
                          [self = shared_from_this()](const ErrorCode& error, size_t size) {
                            if (self->phase_ == Phase::kClosed) return;
                            if (error) return self->close();
                            self->buffer_.commit(size);
                            self->read_header();
                          });
}

void Session::read_header() {
  phase_ = Phase::kHeader;
  set_deadline(limits_.header_timeout);
  http::async_read_header(socket_, buffer_, *parser_,
                          [self = shared_from_this()](const ErrorCode& error, size_t) {
                            if (self->phase_ == Phase::kClosed) return;
                            if (error) return self->refuse_read(error);
                            self->take_header();
                          });
}

void Session::take_header() {
  arrived_ = Clock::now();
  const auto& request = parser_->get();
  head_.method = std::string(request.method_string());
  head_.target = std::string(request.target());
  head_.authorization = std::string(request[http::field::authorization]);
  if (auto refusal = handler_.refuse(head_)) {
    body_unread_ = !parser_->is_done();
    begin_exchange(!body_unread_ && request.keep_alive()).reply(*std::move(refusal));
    return;
  }
  if (parser_->is_done()) return take_request();
  if (request[http::field::expect] != "100-continue") return read_body();
  phase_ = Phase::kBody;
  write(std::string(kContinue), [self = shared_from_this()] { self->read_body(); });
}

void Session::read_body() {
  phase_ = Phase::kBody;
  set_deadline(limits_.body_timeout);
  http::async_read(socket_, buffer_, *parser_,
                   [self = shared_from_this()](const ErrorCode& error, size_t) {
                     if (self->phase_ == Phase::kClosed) return;
                     if (error) return self->refuse_read(error);
                     self->take_request();
                   });
}

void Session::take_request() {
  HttpRequest request{head_, std::move(parser_->get().body()), arrived_};
  begin_exchange(parser_->get().keep_alive());
  watch_client();
  handler_.handle(std::move(request), exchange_);
}

void Session::refuse_read(const ErrorCode& error) {
  ApiError refusal;
  if (timed_out_) {
    refusal = {408, "the request did not arrive in time", "", "request_timeout"};
  } else if (error.category() == http::make_error_code(http::error::body_limit).category() &&
             error != http::error::end_of_stream && error != http::error::partial_message) {
    refusal = read_error(error, limits_);
  } else {
    return close();  // the client has gone
  }
  const auto& request = parser_->get();
  head_ = {std::string(request.method_string()), std::string(request.target()), ""};
  body_unread_ = true;
  begin_exchange(false).reply(error_reply(refusal));
}

Exchange& Session::begin_exchange(bool keep_alive) {
  phase_ = Phase::kAnswering;
  set_deadline({});
  exchange_ = std::make_shared<Exchange>(
      *this, handler_, limits_,
      Exchange::Setup{head_, parser_->get().version() >= 11, keep_alive && !shutting_down_});
  return *exchange_;
}

void Session::watch_client() {
  socket_.async_wait(Tcp::socket::wait_read,
                     [self = shared_from_this(), watched = exchange_](const ErrorCode& error) {
                       if (error || self->exchange_ != watched) return;
                       if (self->client_has_left()) return self->close();
                     });
}

/// Whether the connection is closed or broken. A further request may also have come, and is read
/// later; a client that leaves after that is noticed when something is written.
bool Session::client_has_left() {
  char byte = 0;
  ErrorCode error;
  const size_t size = socket_.receive(asio::buffer(&byte, 1), Tcp::socket::message_peek, error);
  if (error == asio::error::would_block) {
    watch_client();
    return false;
  }
  return error || size == 0;
}

void Session::write(std::string bytes, std::function<void()> done) {
  writing_ = std::move(bytes);
  // Called before each part that is sent: a client that reads slowly is not one that does not read.
  const auto next_part = [self = shared_from_this()](const ErrorCode& error, size_t) -> size_t {
    if (error || self->phase_ == Phase::kClosed) return 0;
    self->set_deadline(self->limits_.write_timeout);
    return kWriteBytes;
  };
  asio::async_write(
      socket_, asio::buffer(writing_), next_part,
      [self = shared_from_this(), done = std::move(done)](const ErrorCode& error, size_t) {
        if (self->phase_ == Phase::kClosed) return;
        if (error) return self->close();
        self->set_deadline({});
        done();
      });
}

void Session::finished(bool keep) {
  exchange_.reset();
  if (keep && !shutting_down_) return await_request();
  linger();
}

void Session::drop(std::string_view reason) {
  log_->warn("connection dropped: {}", reason);
  close();
}

/// The client may still be sending. Closing at once would reset the connection, and the answer
/// might be lost; so what comes is thrown away until the client closes, for a while.
void Session::linger() {
  phase_ = Phase::kLingering;
  ErrorCode error;
  socket_.shutdown(Tcp::socket::shutdown_send, error);
  if (error || !body_unread_) return close();
  set_deadline(kLingerTimeout);
  discard();
}

void Session::discard() {
  buffer_.clear();
  socket_.async_read_some(buffer_.prepare(kReadBytes),
                          [self = shared_from_this()](const ErrorCode& error, size_t) {
                            if (self->phase_ == Phase::kClosed) return;
                            if (error) return self->close();
                            self->discard();
                          });
}

void Session::close() {
  if (phase_ == Phase::kClosed) return;
  const auto self = shared_from_this();  // ended_ lets go of this
  phase_ = Phase::kClosed;
  set_deadline({});
  ErrorCode ignored;
  socket_.close(ignored);
  if (const auto exchange = std::exchange(exchange_, nullptr)) exchange->detach();
  ended_(this);
}

void Session::set_deadline(std::chrono::milliseconds timeout) {
  const uint64_t number = ++deadline_number_;
  if (timeout.count() == 0) {
    deadline_.cancel();
    return;
  }
  deadline_.expires_after(timeout);
  deadline_.async_wait([weak = weak_from_this(), number](const ErrorCode& error) {
    const auto self = weak.lock();
    if (!error && self != nullptr && self->deadline_number_ == number) self->on_deadline();
  });
}

void Session::on_deadline() {
  if (phase_ == Phase::kHeader || phase_ == Phase::kBody) {
    timed_out_ = true;
    ErrorCode ignored;
    socket_.cancel(ignored);
    return;
  }
  if (phase_ == Phase::kAnswering) log_->warn("connection dropped: the client does not read");
  close();
}

}  // namespace anyslot::server
