#include "request_head.h"

#include <algorithm>
#include <boost/beast/core/string.hpp>
#include <string>
#include <string_view>

#include "log.h"

namespace anyslot::server {

namespace {

using boost::beast::iequals;

constexpr unsigned kHttp11 = 11;

std::ptrdiff_t count_of(const RequestHeader& header, http::field field) {
  const auto [first, last] = header.equal_range(field);
  return std::distance(first, last);
}

/// Splits "http://host/path" into its host and "/path"; leaves other targets alone.
void take_absolute_form(RequestHead& head) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!iequals(head.target.substr(0, scheme.size()), std::string(scheme))) continue;
    const size_t end = std::min(head.target.find_first_of("/?", scheme.size()), head.target.size());
    head.host = head.target.substr(scheme.size(), end - scheme.size());
    head.target.erase(0, end);
    if (!head.target.starts_with('/')) head.target.insert(0, "/");
    return;
  }
}

}  // namespace

RequestHead read_request_head(const RequestHeader& header) {
  RequestHead head;
  head.method = std::string(header.method_string());
  head.target = std::string(header.target());
  head.authorization = std::string(header[http::field::authorization]);
  const std::string key(header["X-API-Key"]);
  if (head.authorization.empty() && !key.empty()) head.authorization = "Bearer " + key;
  head.content_type = std::string(header[http::field::content_type]);
  head.host = std::string(header[http::field::host]);
  head.if_none_match = std::string(header[http::field::if_none_match]);
  head.origin = std::string(header[http::field::origin]);
  head.fetch_site = std::string(header["Sec-Fetch-Site"]);
  const std::string length(header[http::field::content_length]);
  head.has_body = header.find(http::field::transfer_encoding) != header.end() ||
                  length.find_first_not_of('0') != std::string::npos;
  take_absolute_form(head);
  return head;
}

std::optional<ApiError> framing_fault(const RequestHeader& header) {
  const bool is_http11 = header.version() >= kHttp11;
  const auto hosts = count_of(header, http::field::host);
  if (hosts > 1 || (is_http11 && hosts == 0)) {
    return ApiError{400, "malformed HTTP request: it must have one Host header", "",
                    "malformed_request"};
  }
  const auto encodings = count_of(header, http::field::transfer_encoding);
  if (encodings == 0) return std::nullopt;
  if (!is_http11 || header.find(http::field::content_length) != header.end()) {
    return ApiError{400,
                    "malformed HTTP request: Transfer-Encoding is for HTTP/1.1 and requests "
                    "without Content-Length",
                    "", "malformed_request"};
  }
  const std::string encoding(header[http::field::transfer_encoding]);
  if (encodings == 1 && iequals(encoding, "chunked")) return std::nullopt;
  return ApiError{
      501, "Transfer-Encoding \"" + loggable(encoding) + "\" is not known; send it as \"chunked\"",
      "", "unsupported_transfer_encoding"};
}

bool expects_continue(const RequestHeader& header) {
  return header.version() >= kHttp11 && iequals(header[http::field::expect], "100-continue");
}

}  // namespace anyslot::server
