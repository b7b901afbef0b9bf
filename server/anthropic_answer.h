#pragma once

#include <string>

#include "answer_format.h"

namespace anyslot::server {

/// Anthropic's Messages API.
AnswerFormat anthropic_format();

/// {"type": "error", "error": {"type", "message"}}
std::string anthropic_error_body(const ApiError& error);

}  // namespace anyslot::server
