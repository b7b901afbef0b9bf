#pragma once

#include <string>

#include "anyslot/request.h"
#include "request_fields.h"

namespace anyslot::server {

/// A parameter that is a 32-bit float; leaves `value` alone where the field is absent.
void read_float(RequestFields& fields, const std::string& key, float& value);
/// Stop strings, one or an array of them.
void read_stop_strings(RequestFields& fields, const std::string& key, SamplingParams& sampling);
/// Without it, a random one.
void read_seed(RequestFields& fields, SamplingParams& sampling);

/// The parameters that OpenAI's ways of asking have, with OpenAI's names and defaults, or else
/// vLLM's; max_tokens and log-probabilities are not among them. Without a seed the answers are
/// random ones.
void read_sampling(RequestFields& fields, SamplingParams& sampling);

}  // namespace anyslot::server
