#include "exchange.h"

#include <array>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/write.hpp>
#include <charconv>
#include <exception>
#include <sstream>
#include <utility>

#include "errors.h"
#include "net.h"

namespace anyslot::server {

namespace {

constexpr int kNotModified = 304;  // tells the length of the body that the client has

std::string hexadecimal(size_t value) {
  std::array<char, 2 * sizeof value> digits{};
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), value, 16);
  return {digits.data(), end};
}

}  // namespace

Exchange::Exchange(Wire& wire, RequestHandler& handler, const Limits& limits, Setup setup)
    : wire_(&wire),
      handler_(handler),
      limits_(limits),
      head_(std::move(setup.head)),
      place_(std::move(setup.place)),
      http11_(setup.http11),
      keep_alive_(setup.keep_alive) {}

template <typename Work>
void Exchange::guard(Work work) {
  try {
    work();
  } catch (const std::exception& error) {
    if (wire_ != nullptr) wire_->drop(error.what());
  }
}

std::string Exchange::header(int status, const HttpReply& reply, bool events) const {
  http::response<http::empty_body> response;
  response.version(http11_ ? 11 : 10);
  response.result(static_cast<unsigned>(status));
  response.set(http::field::server, "anyslot");
  response.set(http::field::content_type, reply.content_type);
  for (const auto& [name, value] : reply.headers) response.set(name, value);
  if (events) {
    response.set(http::field::cache_control, "no-cache");
    if (http11_) response.chunked(true);
  } else {
    response.content_length(reply.body.size());
  }
  response.keep_alive(keep_alive_);
  std::ostringstream text;
  text << response.base();
  return text.str();
}

void Exchange::reply(HttpReply reply) {
  if (wire_ == nullptr || begun_) return;
  begun_ = true;
  ended_ = true;
  guard([&] {
    if (reply.error) reply.body = handler_.error_body(head_, *reply.error);
    handler_.answered(head_, reply.status);
    unsent_ = header(reply.status, reply, false);
    if (head_.method != "HEAD" && reply.status != kNotModified) unsent_ += reply.body;
    flush();
  });
}

void Exchange::begin_events() {
  if (wire_ == nullptr || begun_) return;
  begun_ = true;
  guard([this] {
    handler_.answered(head_, 200);
    if (!http11_) keep_alive_ = false;  // the end of the connection is that of the events
    HttpReply events;
    events.content_type = "text/event-stream; charset=utf-8";
    append(header(200, events, true));
  });
}

void Exchange::send_event(std::string_view name, std::string_view data) {
  if (!begun_) return;
  guard([&] {
    std::string event;
    if (!name.empty()) event.append("event: ").append(name).append("\n");
    append_chunk(event.append("data: ").append(data).append("\n\n"));
  });
}

void Exchange::end_events() {
  if (wire_ == nullptr || !begun_ || ended_) return;
  guard([this] {
    if (http11_) append("0\r\n\r\n");
    ended_ = true;
    flush();
  });
}

void Exchange::abandon() {
  if (wire_ == nullptr || ended_) return;
  if (begun_) return wire_->drop("its answer broke off");
  reply(error_reply({503, "the server could not go on with the request", "", "given_up"}));
}

void Exchange::append_chunk(std::string_view bytes) {
  if (!http11_) return append(bytes);
  append(hexadecimal(bytes.size()).append("\r\n").append(bytes).append("\r\n"));
}

void Exchange::append(std::string_view bytes) {
  if (wire_ == nullptr || ended_) return;
  if (writing_ && unsent_.size() + bytes.size() > limits_.max_unsent_bytes) {
    return wire_->drop("the client does not read its stream");
  }
  unsent_ += bytes;
  flush();
}

void Exchange::flush() {
  if (wire_ == nullptr || writing_) return;
  if (unsent_.empty()) {
    if (!ended_) return;
    place_.reset();
    std::exchange(wire_, nullptr)->finished(keep_alive_);
    return;
  }
  writing_ = true;
  wire_->write(std::exchange(unsent_, {}), [self = shared_from_this()] { self->written(); });
}

void Exchange::written() {
  writing_ = false;
  flush();
}

void Exchange::on_gone(std::function<void()> gone) {
  on_gone_ = std::move(gone);
  if (gone_ && on_gone_) std::exchange(on_gone_, {})();
}

void Exchange::detach() {
  if (wire_ == nullptr) return;
  wire_ = nullptr;
  place_.reset();
  gone_ = true;
  if (on_gone_) std::exchange(on_gone_, {})();
}

}  // namespace anyslot::server
