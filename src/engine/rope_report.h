#pragma once

#include <vector>

#include "anyslot/inspect.h"
#include "model/model_config.h"

namespace anyslot::internal {

/// The RoPEs of a model's layers, in the order of the first layer of each.
std::vector<RopeReport> ropes_of(const ModelConfig& config);

}  // namespace anyslot::internal
