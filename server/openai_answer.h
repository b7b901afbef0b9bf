#pragma once

#include "answer_format.h"

namespace anyslot::server {

/// /v1/completions and /v1/chat/completions.
AnswerFormat openai_completions_format();
AnswerFormat openai_chat_format();

}  // namespace anyslot::server
