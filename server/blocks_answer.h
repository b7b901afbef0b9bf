#pragma once

#include "answer_format.h"

namespace anyslot::server {

/// POST /generate as Block-Attention's server has it: {"blocks": [...]}, each of which is encoded
/// alone but the last one, which sees all; answered with {"ret", "generated", "message"}.
AnswerFormat blocks_format();

}  // namespace anyslot::server
