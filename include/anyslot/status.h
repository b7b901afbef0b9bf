#pragma once

#include <cassert>
#include <string>
#include <utility>
#include <variant>

namespace anyslot {

enum class StatusCode {
  kOk,
  kInvalidArgument,     // the call was wrong: bad option, bad request, bad JSON
  kNotFound,            // a file or a name that does not exist
  kFailedPrecondition,  // the input is readable but cannot be used: wrong dtype, truncated shard,
                        // unknown architecture
  kOutOfRange,         // a request longer than the model's length or than the whole pool, with both
                       // numbers in the message
  kResourceExhausted,  // no room for what is asked, with the numbers in the message
  kCancelled,
  kUnavailable,  // the engine is shutting down
  kInternal,     // a library or a device failed
};

/// The result of an operation that yields no value. The message names the thing, the limit and the
/// cure.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == StatusCode::kOk; }
  explicit operator bool() const { return ok(); }
  StatusCode code() const { return code_; }
  const std::string& message() const { return message_; }
  /// The field of the request that is wrong, e.g. "temperature", or the name of the segment; empty:
  /// none alone.
  const std::string& field() const { return field_; }

  /// The same, about that field.
  Status about(std::string field) && {
    field_ = std::move(field);
    return std::move(*this);
  }

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
  std::string field_;
};

inline Status invalid_argument(std::string message) {
  return {StatusCode::kInvalidArgument, std::move(message)};
}
inline Status not_found(std::string message) { return {StatusCode::kNotFound, std::move(message)}; }
inline Status failed_precondition(std::string message) {
  return {StatusCode::kFailedPrecondition, std::move(message)};
}
inline Status out_of_range(std::string message) {
  return {StatusCode::kOutOfRange, std::move(message)};
}
inline Status resource_exhausted(std::string message) {
  return {StatusCode::kResourceExhausted, std::move(message)};
}
inline Status internal_error(std::string message) {
  return {StatusCode::kInternal, std::move(message)};
}

/// A value or the reason why there is none.
template <typename T>
class [[nodiscard]] Expected {
 public:
  Expected(T held) : state_(std::move(held)) {}
  Expected(Status status) : state_(std::move(status)) { assert(!std::get<Status>(state_).ok()); }

  bool ok() const { return std::holds_alternative<T>(state_); }
  explicit operator bool() const { return ok(); }

  /// Only when ok().
  T& value() & { return std::get<T>(state_); }
  const T& value() const& { return std::get<T>(state_); }
  T&& value() && { return std::get<T>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  /// Ok when there is a value.
  Status status() const { return ok() ? Status() : std::get<Status>(state_); }

 private:
  std::variant<T, Status> state_;
};

}  // namespace anyslot
