#pragma once

#include "anyslot/request.h"
#include "anyslot/status.h"
#include "engine/engine_parts.h"

namespace anyslot::internal {

/// Whether a model can serve these parameters: kInvalidArgument for values outside the ranges of
/// SamplingParams, kFailedPrecondition for stop strings without a tokenizer.
Status check_sampling(const SamplingParams& sampling, const EngineParts& parts);

}  // namespace anyslot::internal
