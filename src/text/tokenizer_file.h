#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "anyslot/status.h"
#include "base/hash.h"
#include "text/added_tokens.h"
#include "text/bpe.h"
#include "text/post_processor.h"
#include "text/pre_tokenizer.h"
#include "text/vocabulary.h"

namespace anyslot {

/// What a tokenizer.json says, ready for use.
struct TokenizerParts {
  Vocabulary vocabulary;
  AddedTokens added_tokens;
  PreTokenizer pre_tokenizer;
  Bpe model;
  PostProcessor post_processor;
  Digest fingerprint;  // of the file
};

/// Reads a tokenizer.json of a byte-level BPE. Nothing in it is passed over silently: what has a
/// bearing on ids or text and is not supported is refused by name. Errors as Tokenizer::load.
Expected<TokenizerParts> load_tokenizer_file(const std::string& path);

/// The same of its object; `where` begins every message.
Expected<TokenizerParts> read_tokenizer(const nlohmann::json& file, const std::string& where,
                                        const Digest& fingerprint);

}  // namespace anyslot
