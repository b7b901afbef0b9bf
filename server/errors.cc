#include "errors.h"

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

nlohmann::json or_null(const std::string& text) {
  return text.empty() ? nlohmann::json() : nlohmann::json(text);
}

}  // namespace

std::string error_body(const ApiError& error) {
  return to_text({{"error",
                   {{"message", error.message},
                    {"type", error_type(error.status)},
                    {"param", or_null(error.param)},
                    {"code", or_null(error.code)}}}});
}

HttpReply error_reply(const ApiError& error) {
  HttpReply reply;
  reply.status = error.status;
  reply.body = error_body(error);
  reply.headers = error.headers;
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

ApiError internal_error_of(const std::exception& error) {
  return {500, std::string("internal error: ") + error.what(), "", "internal_error"};
}

}  // namespace anyslot::server
