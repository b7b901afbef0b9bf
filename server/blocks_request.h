#pragma once

#include <nlohmann/json.hpp>

#include "answer_request.h"
#include "errors.h"

namespace anyslot::server {

/// Reads a request of Block-Attention's POST /generate. Fails as the other parsers do.
ApiExpected<AnswerRequest> parse_blocks_request(const nlohmann::json& body,
                                                const RequestRules& rules);

}  // namespace anyslot::server
