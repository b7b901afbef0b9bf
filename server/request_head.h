#pragma once

#include <boost/beast/http/fields.hpp>
#include <boost/beast/http/message.hpp>
#include <optional>

#include "errors.h"
#include "http_exchange.h"
#include "net.h"

namespace anyslot::server {

using RequestHeader = http::request_header<http::fields>;

/// What handlers read of a header. "http://host/path" as a target becomes "/path", and `host` what
/// it names.
RequestHead read_request_head(const RequestHeader& header);

/// Why the end of the request, or what it is meant for, cannot be told; none when it can. No
/// further request can be read after such a one.
std::optional<ApiError> framing_fault(const RequestHeader& header);

/// Whether the client waits for "100 Continue" before it sends the body.
bool expects_continue(const RequestHeader& header);

}  // namespace anyslot::server
