#include "errors.h"

#include <new>
#include <utility>

#include "json_body.h"

namespace anyslot::server {

namespace {

std::string_view error_type(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 404:
      return "not_found_error";
    case 429:
      return "rate_limit_error";
    case 503:
      return "service_unavailable_error";
    default:
      return status >= 500 ? "server_error" : "invalid_request_error";
  }
}

constexpr size_t kMaxQuote = 100;
constexpr size_t kMaxMessage = 2000;  // of an error, whoever wrote it

/// Cut between two characters.
std::string shortened(std::string_view text, size_t max_bytes) {
  if (text.size() <= max_bytes) return std::string(text);
  size_t end = max_bytes;
  while (end > 0 && (text[end] & '\xc0') == '\x80') --end;
  return std::string(text.substr(0, end)) + "...";
}

nlohmann::json or_null(const std::string& text) {
  return text.empty() ? nlohmann::json() : nlohmann::json(text);
}

}  // namespace

std::string excerpt(std::string_view text) { return shortened(text, kMaxQuote); }

std::string error_message(const ApiError& error) {
  const bool names_field = error.param.empty() || error.message.starts_with(error.param);
  return shortened(names_field ? error.message : error.param + ": " + error.message, kMaxMessage);
}

std::string openai_error_body(const ApiError& error) {
  return to_text({{"error",
                   {{"message", shortened(error.message, kMaxMessage)},
                    {"type", error_type(error.status)},
                    {"param", or_null(shortened(error.param, kMaxMessage))},
                    {"code", or_null(error.code)}}}});
}

HttpReply error_reply(ApiError error) {
  HttpReply reply;
  reply.status = error.status;
  reply.headers = std::move(error.headers);
  reply.error = std::move(error);
  return reply;
}

ApiError error_of(const Status& status) {
  switch (status.code()) {
    case StatusCode::kInvalidArgument:
    case StatusCode::kFailedPrecondition:
      return {400, status.message(), status.field()};
    case StatusCode::kOutOfRange:
      return {400, status.message(), status.field(), "context_length_exceeded"};
    case StatusCode::kResourceExhausted:
      return {400, status.message(), status.field(), "no_room"};
    case StatusCode::kNotFound:
      return {404, status.message(), "", "not_found"};
    case StatusCode::kCancelled:
    case StatusCode::kUnavailable:
      return {503, status.message(), "", "shutting_down"};
    case StatusCode::kOk:
    case StatusCode::kInternal:
      break;
  }
  return {500, status.message(), "", "internal_error"};
}

ApiError failure_of(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) {
    return {503, "there is not enough memory for the request", "", "out_of_memory"};
  }
  return {500, std::string("internal error: ") + error.what(), "", "internal_error"};
}

ApiError shutting_down() { return {503, "the server is shutting down", "", "shutting_down"}; }

ApiError queue_full(size_t limit) {
  return {429,
          "the server is already handling " + std::to_string(limit) +
              " requests, the most that it takes (--max-running-requests, --max-queue); try again "
              "soon",
          "",
          "queue_full",
          {{"Retry-After", "1"}}};
}

}  // namespace anyslot::server
