#include "session.h"

#include <poll.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/beast/http/error.hpp>
#include <exception>
#include <string>
#include <utility>

#include "request_head.h"

namespace anyslot::server {

namespace {

constexpr size_t kReadAhead = 32 << 10;  // of requests that wait for the current one
constexpr std::chrono::milliseconds kLingerTimeout{10'000};
constexpr std::chrono::milliseconds kFullWatch{500};
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

ApiError too_large(const Limits& limits, std::string_view what) {
  return {413,
          std::string(what) + " larger than " + std::to_string(limits.max_body_bytes) +
              " bytes (--max-body); send less",
          "", "body_too_large"};
}

ApiError header_too_large(const Limits& limits) {
  return {431,
          "the header, or that of a chunk or its trailer, is larger than " +
              std::to_string(limits.max_header_bytes) + " bytes",
          "", "header_too_large"};
}

ApiError bodies_full(const ByteBudget& bodies) {
  return {429,
          "the bodies of the requests that come just now are larger than " +
              std::to_string(bodies.limit()) + " bytes together; try again soon",
          "",
          "queue_full",
          {{"Retry-After", "1"}}};
}

ApiError read_error(const ErrorCode& error, const Limits& limits) {
  if (error == http::error::body_limit) return too_large(limits, "the body is");
  if (error == http::error::header_limit) return header_too_large(limits);
  return {400, "malformed HTTP request: " + error.message(), "", "malformed_request"};
}

/// Whether the other side has closed, though what it sent before has not been read.
bool has_left(int socket) {
  pollfd state{socket, POLLRDHUP, 0};
  return ::poll(&state, 1, 0) > 0;
}

}  // namespace

Session::Session(std::shared_ptr<asio::io_context> io, Tcp::socket socket, RequestHandler& handler,
                 const Limits& limits, const ByteBudget& bodies, Logger log,
                 std::function<void(Session*)> ended)
    : io_(std::move(io)),
      socket_(std::move(socket)),
      handler_(handler),
      limits_(limits),
      bodies_(bodies),
      log_(std::move(log)),
      ended_(std::move(ended)),
      deadline_(*io_),
      full_watch_(*io_) {}

template <typename Work>
void Session::guard(Work work) {
  if (phase_ == Phase::kClosed) return;
  try {
    work();
  } catch (const std::exception& error) {
    fail(error);
  }
}

void Session::fail(const std::exception& error) {
  try {
    log_->error("connection failed: {}", error.what());
    if (phase_ == Phase::kIdle || phase_ == Phase::kHeader || phase_ == Phase::kBody) {
      return refuse(failure_of(error));
    }
    if (phase_ == Phase::kAnswering && exchange_ != nullptr && !exchange_->begun()) {
      return exchange_->reply(error_reply(failure_of(error)));
    }
  } catch (const std::exception&) {  // memory does not even suffice for the answer
  }
  close();
}

void Session::start() {
  guard([this] {
    ErrorCode ignored;
    socket_.set_option(Tcp::no_delay(true), ignored);
    socket_.set_option(asio::socket_base::send_buffer_size(limits_.send_buffer_bytes), ignored);
    socket_.non_blocking(true, ignored);
    await_request();
  });
}

void Session::shut_down() {
  shutting_down_ = true;
  if (phase_ == Phase::kIdle) return close();
  if (phase_ == Phase::kHeader || phase_ == Phase::kBody) {
    return guard([this] { refuse(shutting_down()); });
  }
  if (exchange_ != nullptr) exchange_->close_after();
}

void Session::await_request() {
  if (shutting_down_) return close();
  parser_.emplace();
  parser_->header_limit(static_cast<uint32_t>(limits_.max_header_bytes));
  parser_->body_limit(limits_.max_body_bytes);
  raw_body_bytes_ = 0;
  phase_ = Phase::kIdle;
  set_deadline(limits_.idle_timeout);
  proceed();
}

/// The connection is always being read, since only so its end is noticed.
void Session::read_more() {
  if (reading_ || phase_ == Phase::kClosed) return;
  if (phase_ == Phase::kAnswering && buffer_.size() >= kReadAhead) return watch_full_buffer();
  reading_ = true;
  socket_.async_read_some(
      asio::buffer(incoming_), [self = shared_from_this()](const ErrorCode& error, size_t size) {
        self->reading_ = false;
        self->guard([&] {
          if (error) return self->close();
          const asio::const_buffer read = asio::buffer(self->incoming_, size);
          self->buffer_.commit(asio::buffer_copy(self->buffer_.prepare(size), read));
          self->proceed();
        });
      });
}

void Session::proceed() {
  switch (phase_) {
    case Phase::kIdle:
      return begin_request();
    case Phase::kHeader:
    case Phase::kBody:
      return parse();
    case Phase::kContinuing:
    case Phase::kAnswering:
      if (body_unread_) buffer_.clear();
      return read_more();
    case Phase::kLingering:
      buffer_.clear();
      return read_more();
    case Phase::kClosed:
      return;
  }
}

/// Empty lines before a request do not count (RFC 9112, 2.2): some clients end a body with one.
void Session::begin_request() {
  const auto text = [this] {
    return std::string_view(static_cast<const char*>(buffer_.data().data()), buffer_.size());
  };
  while (text().starts_with("\r\n")) buffer_.consume(2);
  if (text().empty() || text() == "\r") return read_more();
  phase_ = Phase::kHeader;
  set_deadline(limits_.header_timeout);
  parse();
}

void Session::parse() {
  while (buffer_.size() > 0) {
    ErrorCode error;
    const size_t used = parser_->put(buffer_.data(), error);
    buffer_.consume(used);
    if (phase_ == Phase::kBody) raw_body_bytes_ += used;
    if (error && error != http::error::need_more) return refuse(read_error(error, limits_));
    if (phase_ == Phase::kBody && framing_too_large()) {
      return refuse(too_large(limits_, "the framing of the chunks is"));
    }
    if (error) {
      // Only a chunk's header or trailer can be that long: of a request's the parser tells.
      if (buffer_.size() > limits_.max_header_bytes) return refuse(header_too_large(limits_));
      break;
    }
    if (phase_ == Phase::kBody && !charge_body()) return refuse(bodies_full(bodies_));
    if (phase_ == Phase::kHeader) {
      if (parser_->is_header_done()) return take_header();
      continue;
    }
    if (parser_->is_done()) return take_request();
  }
  read_more();
}

void Session::take_header() {
  arrived_ = Clock::now();
  const RequestHeader& header = parser_->get();
  if (const auto fault = framing_fault(header)) return refuse(*fault);
  head_ = read_request_head(header);
  Admission admission = handler_.admit(head_);
  if (admission.refusal) {
    body_unread_ = !parser_->is_done() && !skip_body();
    begin_exchange(!body_unread_ && parser_->keep_alive()).reply(*std::move(admission.refusal));
    return proceed();
  }
  place_ = std::move(admission.place);
  if (parser_->is_done()) return take_request();
  parser_->eager(true);
  if (!expects_continue(header)) return read_body();
  phase_ = Phase::kContinuing;
  write(std::string(kContinue), [this] { read_body(); });
}

/// Passes over the body of a request that is refused, if all of it has come with the header: the
/// connection need not be closed then.
bool Session::skip_body() {
  const auto length = parser_->content_length();
  if (!length || *length > buffer_.size()) return false;
  buffer_.consume(static_cast<size_t>(*length));
  return true;
}

void Session::read_body() {
  phase_ = Phase::kBody;
  set_deadline(limits_.body_timeout);
  parse();
}

/// Chunks may be tiny, and their headers long.
bool Session::framing_too_large() const {
  return raw_body_bytes_ - parser_->get().body().size() >
         limits_.max_body_bytes + limits_.max_header_bytes;
}

/// False when all bodies together would hold too much.
bool Session::charge_body() { return bodies_.grow(charge_, parser_->get().body().size()); }

void Session::take_request() {
  if (!charge_body()) return refuse(bodies_full(bodies_));
  HttpRequest request{
      head_, {std::move(parser_->get().body()), std::move(charge_)}, arrived_, place_};
  begin_exchange(parser_->keep_alive());
  read_more();
  handler_.handle(std::move(request), sink());
}

/// Answers a request of which no more is read, so that none can follow it.
void Session::refuse(const ApiError& refusal) {
  head_ = read_request_head(parser_->get());
  body_unread_ = true;
  begin_exchange(false).reply(error_reply(refusal));
  proceed();
}

Exchange& Session::begin_exchange(bool keep_alive) {
  phase_ = Phase::kAnswering;
  set_deadline({});
  exchange_ = std::make_shared<Exchange>(
      *this, handler_, limits_,
      Exchange::Setup{head_, parser_->get().version() >= 11, keep_alive && !shutting_down_,
                      std::exchange(place_, nullptr)});
  charge_.release();
  return *exchange_;
}

/// The current exchange for who answers. When the last one lets go of it without an answer,
/// because something was thrown, the client must not wait for ever.
std::shared_ptr<ResponseSink> Session::sink() const {
  return {exchange_.get(), [io = io_, exchange = exchange_](ResponseSink*) {
            try {
              asio::post(*io, [exchange] { exchange->abandon(); });
            } catch (const std::exception&) {  // no memory: only the client can end it now
            }
          }};
}

/// So much has come that no more is read before the current request is answered. That the client
/// leaves can still be seen, but nobody tells.
void Session::watch_full_buffer() {
  full_watch_.expires_after(kFullWatch);
  full_watch_.async_wait([weak = weak_from_this()](const ErrorCode& error) {
    const auto self = weak.lock();
    if (error || self == nullptr) return;
    self->guard([&self] {
      if (has_left(self->socket_.native_handle())) return self->close();
      self->read_more();
    });
  });
}

void Session::write(std::string bytes, std::function<void()> done) {
  writing_ = std::move(bytes);
  written_ = 0;
  write_done_ = std::move(done);
  least_rate_end_ = Clock::now() + limits_.write_timeout +
                    std::chrono::seconds(writing_.size() / limits_.least_write_rate);
  write_some();
}

void Session::write_some() {
  set_deadline(limits_.write_timeout);
  unsent_before_ = unacknowledged();
  socket_.async_write_some(asio::buffer(writing_) + written_,
                           [self = shared_from_this()](const ErrorCode& error, size_t size) {
                             self->guard([&] {
                               if (error) return self->close();
                               self->written_ += size;
                               if (self->written_ < self->writing_.size()) {
                                 if (Clock::now() > self->least_rate_end_) {
                                   return self->drop("the client reads too slowly");
                                 }
                                 return self->write_some();
                               }
                               self->set_deadline({});
                               std::exchange(self->write_done_, {})();
                             });
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
  if (error || (!body_unread_ && buffer_.size() == 0)) return close();
  set_deadline(kLingerTimeout);
  proceed();
}

void Session::close() {
  if (phase_ == Phase::kClosed) return;
  const auto self = shared_from_this();  // ended_ lets go of this
  phase_ = Phase::kClosed;
  set_deadline({});
  full_watch_.cancel();
  write_done_ = {};
  place_.reset();
  charge_.release();
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
    if (error || self == nullptr || self->deadline_number_ != number) return;
    self->guard([&self] { self->on_deadline(); });
  });
}

/// Bytes that the kernel has taken and the client's has not.
size_t Session::unacknowledged() const {
  int bytes = 0;
  if (::ioctl(const_cast<Tcp::socket&>(socket_).native_handle(), TIOCOUTQ, &bytes) != 0) return 0;
  return static_cast<size_t>(std::max(bytes, 0));
}

void Session::on_deadline() {
  if (phase_ == Phase::kHeader || phase_ == Phase::kBody) {
    return refuse({408, "the request did not arrive in time", "", "request_timeout"});
  }
  if (phase_ == Phase::kAnswering) {
    // The kernel asks for more only when much of its buffer is free, which can take longer.
    const size_t unsent = unacknowledged();
    const bool takes_some = unsent < std::exchange(unsent_before_, unsent);
    if (takes_some && Clock::now() < least_rate_end_) return set_deadline(limits_.write_timeout);
    log_->warn("connection dropped: the client does not read");
  }
  close();
}

}  // namespace anyslot::server
