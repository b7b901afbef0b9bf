#pragma once

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
  Digest fingerprint;  // SHA-256 of the file
};

/// Reads a tokenizer.json of a byte-level BPE. Nothing in it is passed over silently: what has a
/// bearing on ids or text and is not supported is refused by name. Errors as Tokenizer::load.
Expected<TokenizerParts> load_tokenizer_file(const std::string& path);

/// The same for the text of such a file; `path` is for messages.
Expected<TokenizerParts> read_tokenizer_json(const std::string& path, const std::string& text);

}  // namespace anyslot
