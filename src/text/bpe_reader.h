#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "anyslot/status.h"
#include "text/bpe.h"
#include "text/vocabulary.h"

namespace anyslot {

/// Checks that `model` (the field of a tokenizer.json, called `where` in messages) is a byte-level
/// BPE, and adds its tokens to `vocabulary`.
Status read_bpe_vocabulary(const nlohmann::json& model, const std::string& where,
                           Vocabulary& vocabulary);

/// Reads the rest of the model that read_bpe_vocabulary accepted. `vocabulary` must know which
/// tokens are special: no plain text becomes one of them, whatever the merges say.
Expected<Bpe> read_bpe(const nlohmann::json& model, const std::string& where,
                       const Vocabulary& vocabulary);

}  // namespace anyslot
