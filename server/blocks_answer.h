#pragma once

#include <nlohmann/json.hpp>

#include "answer_format.h"

namespace anyslot::server {

/// POST /generate as Block-Attention's server has it: {"blocks": [...]}, each of which is encoded
/// alone but the last one, which sees all; answered with {"ret", "generated", "message"}.
AnswerFormat blocks_format();

ApiExpected<AnswerRequest> parse_blocks_request(const nlohmann::json& body,
                                                const RequestRules& rules);

}  // namespace anyslot::server
