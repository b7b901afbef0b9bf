#pragma once

#include <string>

#include "anyslot/status.h"
#include "text/json_fields.h"
#include "text/pattern.h"

namespace anyslot {

/// Reads the field `pattern` of an object in a tokenizer.json: {"String": ...} or {"Regex": ...}.
Expected<Pattern> read_pattern(JsonFields& fields);

}  // namespace anyslot
