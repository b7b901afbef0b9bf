#pragma once

#include <cstdint>
#include <span>

#include "anyslot/result.h"

namespace anyslot {

/// The log-probabilities of `token` and of the `num_top` likeliest tokens (fewer when there are
/// fewer; the lowest id first among equals) under the softmax of finite logits [vocab].
TokenLogprobs token_logprobs(std::span<const float> logits, int32_t token, int num_top);

}  // namespace anyslot
