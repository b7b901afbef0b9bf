#pragma once

#include <nlohmann/json.hpp>

#include "answer_request.h"
#include "errors.h"

namespace anyslot::server {

/// Reads a request of Anthropic's Messages API: documents are content blocks of type document (its
/// source a text) or search_result. A cache_control holds the documents up to it for its time to
/// live. Fails as the other parsers do.
ApiExpected<AnswerRequest> parse_messages_request(const nlohmann::json& body,
                                                  const RequestRules& rules);
/// The same of a request to count the prompt's tokens.
ApiExpected<AnswerRequest> parse_count_request(const nlohmann::json& body,
                                               const RequestRules& rules);

}  // namespace anyslot::server
