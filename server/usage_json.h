#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>

#include "anyslot/result.h"

namespace anyslot::server {

/// What a request's documents were, as every API tells it: [{"index", "id", "tokens",
/// "cached_tokens", "source"}].
nlohmann::json document_usages_json(const Usage& usage);

/// OpenAI's usage, with those documents.
nlohmann::json usage_json(const Usage& usage);

/// Bytes of such JSON, roughly.
size_t usage_bytes(const Usage& usage);

}  // namespace anyslot::server
