#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "anyslot/status.h"
#include "text/vocabulary.h"

namespace anyslot {

/// What a tokenizer puts around a single sequence.
struct PostProcessor {
  std::vector<int32_t> prefix_ids;  // usually BOS
  std::vector<int32_t> suffix_ids;
};

/// Reads the field post_processor of a tokenizer.json, called `where` in messages: a ByteLevel
/// (about offsets only), a TemplateProcessing, or a Sequence of them.
Expected<PostProcessor> read_post_processor(const nlohmann::json& object, const std::string& where,
                                            const Vocabulary& vocabulary);

}  // namespace anyslot
