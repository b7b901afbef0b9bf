#pragma once

#include <cstddef>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "anyslot/status.h"
#include "api_error.h"
#include "http_exchange.h"

namespace anyslot::server {

/// At most about a hundred bytes of what a client sent, to be told in a message.
std::string excerpt(std::string_view text);

/// The message of an error, with its field first, for shapes that have no place for that; cut where
/// it is endless.
std::string error_message(const ApiError& error);

/// OpenAI's shape: {"error": {"message", "type", "param", "code"}}; the type follows from the
/// status.
std::string openai_error_body(const ApiError& error);

/// A reply whose body is written in the shape of the API that was asked.
HttpReply error_reply(ApiError error);

/// The engine's refusal as an answer.
ApiError error_of(const Status& status);

/// The answer when work for a request throws: 503 when memory does not suffice, else 500.
ApiError failure_of(const std::exception& error);

/// The answer to a request beyond those that the server works on.
ApiError queue_full(size_t limit);
ApiError shutting_down();

/// A value or the answer that tells why there is none.
template <typename T>
class ApiExpected {
 public:
  ApiExpected(T value) : state_(std::move(value)) {}
  ApiExpected(ApiError error) : state_(std::move(error)) {}

  bool ok() const { return std::holds_alternative<T>(state_); }
  explicit operator bool() const { return ok(); }

  /// Only when ok().
  T& operator*() & { return std::get<T>(state_); }
  const T& operator*() const& { return std::get<T>(state_); }
  T&& operator*() && { return std::get<T>(std::move(state_)); }
  T* operator->() { return &std::get<T>(state_); }
  const T* operator->() const { return &std::get<T>(state_); }

  /// Only when not ok().
  const ApiError& error() const { return std::get<ApiError>(state_); }

 private:
  std::variant<T, ApiError> state_;
};

}  // namespace anyslot::server
