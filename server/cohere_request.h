#pragma once

#include <nlohmann/json.hpp>

#include "answer_request.h"
#include "errors.h"

namespace anyslot::server {

/// Reads a request of Cohere's /v2/chat. Fails as the other parsers do.
ApiExpected<AnswerRequest> parse_cohere_request(const nlohmann::json& body,
                                                const RequestRules& rules);

}  // namespace anyslot::server
