#pragma once

#include "anyslot/status.h"
#include "base/hash.h"
#include "text/added_tokens.h"
#include "text/bpe.h"
#include "text/normalizer.h"
#include "text/post_processor.h"
#include "text/pre_tokenizer.h"
#include "text/token_decoder.h"
#include "text/tokenizer_description.h"
#include "text/vocabulary.h"

namespace anyslot {

/// A tokenizer, ready for use.
struct TokenizerParts {
  Vocabulary vocabulary;
  AddedTokens added_tokens;
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  Bpe model;
  TokenDecoder decoder;
  PostProcessor post_processor;
  Digest fingerprint;
};

/// Fails with kFailedPrecondition, "SOURCE: ...", for what cannot work.
Expected<TokenizerParts> make_tokenizer_parts(TokenizerDescription description);

}  // namespace anyslot
