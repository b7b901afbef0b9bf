#pragma once

#include <nlohmann/json_fwd.hpp>

#include "model/gguf/gguf_keys.h"

namespace anyslot {

/// Adds config.json's fields about the RoPE, all but rope_theta. Failures stay in the keys' fields.
void add_gguf_rope(ArchitectureKeys& keys, nlohmann::json& config);

}  // namespace anyslot
