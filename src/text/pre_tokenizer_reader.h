#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "anyslot/status.h"
#include "text/pre_tokenizer.h"

namespace anyslot {

/// Reads the field pre_tokenizer of a tokenizer.json, called `where` in messages: a Split or a
/// ByteLevel, or a Sequence of them that ends in ByteLevel.
Expected<PreTokenizer> read_pre_tokenizer(const nlohmann::json& object, const std::string& where);

}  // namespace anyslot
