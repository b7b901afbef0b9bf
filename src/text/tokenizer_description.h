#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/hash.h"
#include "text/added_tokens.h"
#include "text/merge_table.h"
#include "text/normalizer.h"
#include "text/post_processor.h"
#include "text/pre_tokenizer.h"
#include "text/token_decoder.h"
#include "text/vocabulary.h"

namespace anyslot {

/// What a tokenizer with byte-pair encoding is made of, whatever file says it: each reader fills
/// this, and Tokenizer::make checks it and makes it work.
struct TokenizerDescription {
  std::string source;  // the file, for messages
  Digest fingerprint;  // of all that follows, for example the file's SHA-256

  Vocabulary vocabulary;  // Token::bytes and is_byte are not read
  std::vector<AddedToken> added_tokens;

  // The model. Either words are bytes, and names are in the byte-level alphabet of GPT-2; or words
  // are characters, as in SentencePiece.
  bool byte_level = false;
  std::vector<BpeMerge> merges;
  bool ignore_merges = false;  // a word that is a token as a whole stays whole
  bool byte_fallback = false;  // an unknown character becomes the tokens <0x00> to <0xFF>
  std::optional<int32_t> unknown_id;
  bool fuse_unknown = false;  // a run of unknown characters is one token

  std::vector<Normalizer::Step> normalizer;
  std::vector<PreTokenizer::Step> pre_tokenizer;  // without the step into the alphabet
  TokenDecoder::Options decoder;
  PostProcessor post_processor;
};

}  // namespace anyslot
