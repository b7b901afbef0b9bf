#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "errors.h"

namespace anyslot::server {

/// Parses the body of a request, which must be one JSON object in UTF-8 that nests at most
/// `max_depth` levels, has about a million values at most and names no field of an object twice.
ApiExpected<nlohmann::json> parse_body(std::string_view body, int max_depth);

/// On one line; bytes that are no UTF-8 become replacement characters.
std::string to_text(const nlohmann::json& value);
/// The answer 200 with that body.
HttpReply json_reply(const nlohmann::json& body);

}  // namespace anyslot::server
