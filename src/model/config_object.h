#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "anyslot/status.h"
#include "model/model_config.h"

// For loaders only: the other headers of configs show no JSON.

namespace anyslot {

/// Reads the object of a config.json; `where` begins every message. Fails like load_model_config.
Expected<ModelConfig> read_config_object(const nlohmann::json& object, const std::string& where,
                                         int64_t max_model_len);

}  // namespace anyslot
