#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "anyslot/status.h"
#include "text/normalizer.h"

namespace anyslot {

/// Reads the field normalizer of a tokenizer.json, called `where` in messages.
Expected<std::vector<Normalizer::Step>> read_normalizer(const nlohmann::json& object,
                                                        const std::string& where);

}  // namespace anyslot
