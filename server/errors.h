#pragma once

#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "anyslot/status.h"
#include "http_exchange.h"

namespace anyslot::server {

/// An answer in OpenAI's error shape: {"error": {"message", "type", "param", "code"}}.
struct ApiError {
  int status = 400;
  std::string message;
  std::string param = {};  // the field that is wrong; empty: null
  std::string code = {};   // empty: null
  std::vector<std::pair<std::string, std::string>> headers = {};
};

/// {"error": {...}} on one line; the type follows from the status.
std::string error_body(const ApiError& error);
HttpReply error_reply(const ApiError& error);

/// The engine's refusal as an answer.
ApiError error_of(const Status& status);
/// What nobody foresaw as an answer.
ApiError internal_error_of(const std::exception& error);

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
