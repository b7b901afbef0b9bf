#pragma once

#include "answer_format.h"

namespace anyslot::server {

/// Anthropic's Messages API.
AnswerFormat anthropic_format();

}  // namespace anyslot::server
