#pragma once

#include "answer_format.h"

namespace anyslot::server {

/// Cohere's /v2/chat.
AnswerFormat cohere_format();

}  // namespace anyslot::server
