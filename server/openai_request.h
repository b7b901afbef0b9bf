#pragma once

#include <nlohmann/json.hpp>

#include "answer_request.h"
#include "errors.h"

namespace anyslot::server {

/// Reads a request of /v1/completions or /v1/chat/completions. Fails with 404 for a model that is
/// not served and with 400 for everything that is wrong or not supported, by the field's name.
ApiExpected<AnswerRequest> parse_completion_request(const nlohmann::json& body,
                                                    const RequestRules& rules);
ApiExpected<AnswerRequest> parse_chat_request(const nlohmann::json& body,
                                              const RequestRules& rules);

}  // namespace anyslot::server
