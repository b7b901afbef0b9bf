#pragma once

#include "anyslot/request.h"
#include "request_fields.h"

namespace anyslot::server {

/// The parameters that both ways of asking have, with OpenAI's names and defaults, or else vLLM's;
/// max_tokens and log-probabilities are not among them. Without a seed the answers are random ones.
void read_sampling(RequestFields& fields, SamplingParams& sampling);

}  // namespace anyslot::server
