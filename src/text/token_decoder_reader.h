#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "anyslot/status.h"
#include "text/token_decoder.h"

namespace anyslot {

/// Reads the field decoder of a tokenizer.json, called `where` in messages: ByteLevel alone, or
/// steps on each token (Replace, Strip, Metaspace), then ByteFallback, then Fuse, then a Strip of
/// the whole; each part may be missing.
Expected<TokenDecoder::Options> read_token_decoder(const nlohmann::json& object,
                                                   const std::string& where);

}  // namespace anyslot
