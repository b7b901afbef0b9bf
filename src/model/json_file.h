#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

#include "anyslot/status.h"

// For loaders only: no other header of this folder shows JSON.

namespace anyslot {

/// Parses JSON that is one object whose own keys are distinct. `where` begins every message; broken
/// JSON is reported with line and column.
Expected<nlohmann::json> parse_json_object(const std::string& where,
                                           std::span<const std::byte> text);

/// The same of a file of at most 100 MB.
Expected<nlohmann::json> read_json_file(const std::string& path);

/// A name out of a file, in quotes, fit for a one-line message: control characters escaped, long
/// ones cut.
std::string quote_name(std::string_view name);

}  // namespace anyslot
