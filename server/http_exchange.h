#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "active_requests.h"
#include "api_error.h"
#include "byte_budget.h"

namespace anyslot::server {

using Clock = std::chrono::steady_clock;

struct RequestHead {
  std::string method;              // "GET"
  std::string target;              // path and query as they came
  std::string authorization = {};  // or "Bearer " and X-API-Key, where only that is given
  std::string content_type = {};
  std::string host = {};  // empty: an HTTP/1.0 client did not say
  std::string if_none_match = {};
  std::string fetch_site = {};  // what a browser says of the page that asks; empty: no browser
  std::string origin = {};      // the site of that page, where the browser tells
  bool has_body = false;
};

/// A body, and its part of what all bodies may hold.
struct RequestBody {
  std::string text;
  ByteBudget::Charge charge = {};

  void clear() {
    text = {};
    charge.release();
  }
};

struct HttpRequest {
  RequestHead head;
  RequestBody body;
  Clock::time_point arrived;                     // the end of its header
  std::shared_ptr<ActiveRequests::Place> place;  // null: it needs none
};

struct HttpReply {
  int status = 200;
  std::string body;
  std::string content_type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers;
  std::optional<ApiError> error = {};  // the body is then that of its API
};

/// Where the answer to one request goes: one reply, or a stream of server-sent events. For use on
/// the I/O thread only, but it may be let go anywhere; calls for a client that is gone do nothing.
/// A sink that is let go before its answer has ended answers 503, or ends the connection.
class ResponseSink {
 public:
  virtual ~ResponseSink() = default;

  virtual void reply(HttpReply reply) = 0;

  virtual void begin_events() = 0;
  /// `name`: the event's type; empty: none. `data`: one line.
  virtual void send_event(std::string_view name, std::string_view data) = 0;
  virtual void end_events() = 0;

  /// `gone` is called, once, when the client leaves before the answer has ended, or has left.
  virtual void on_gone(std::function<void()> gone) = 0;
};

/// A request that has come as far as its header.
struct Admission {
  std::optional<HttpReply> refusal;  // its answer; its body need not be read
  std::shared_ptr<ActiveRequests::Place> place =
      {};  // of a request that is let in, if it needs one
};

/// What the connections serve. Called on the I/O thread.
class RequestHandler {
 public:
  virtual ~RequestHandler() = default;

  /// Whether the rest of a request is to be read.
  virtual Admission admit(const RequestHead& head) = 0;
  virtual void handle(HttpRequest request, std::shared_ptr<ResponseSink> sink) = 0;
  /// The body of an error, in the shape of the API that the request was for.
  virtual std::string error_body(const RequestHead& head, const ApiError& error) const = 0;
  /// An answer has begun, with this status.
  virtual void answered(const RequestHead& head, int status) = 0;
};

}  // namespace anyslot::server
