#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "anyslot/status.h"
#include "model/config_outline.h"
#include "model/model_config.h"

// For loaders only: the other headers of configs show no JSON.

namespace anyslot {

/// Reads the object of a config.json; `where` begins every message. Fails like load_model_config.
Expected<ModelConfig> read_config_object(const nlohmann::json& object, const std::string& where,
                                         int64_t max_model_len);
/// architectures[0]. Fails in the same way without one.
Expected<std::string> read_architecture(const nlohmann::json& object, const std::string& where);
Expected<ConfigOutline> read_config_outline(const nlohmann::json& object, const std::string& where);

}  // namespace anyslot
