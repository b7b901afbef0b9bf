#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "anyslot/status.h"
#include "text/pre_tokenizer.h"

namespace anyslot {

struct PreTokenizerFields {
  std::vector<PreTokenizer::Step> steps;
  bool byte_level = false;  // the last step writes words in the byte-level alphabet
};

/// Reads the field pre_tokenizer of a tokenizer.json, called `where` in messages.
Expected<PreTokenizerFields> read_pre_tokenizer(const nlohmann::json& object,
                                                const std::string& where);

}  // namespace anyslot
