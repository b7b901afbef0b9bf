#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "anyslot/status.h"
#include "text/pre_tokenizer.h"

namespace anyslot {

/// A name of tokenizer.ggml.pre, and what goes with it.
struct GgufPreTokenizer {
  std::string_view name;
  std::string_view split;      // empty: none
  bool gpt2_words = false;     // GPT-2's expression cuts what is left
  bool composes = false;       // characters first (NFC)
  bool ignore_merges = false;  // a word that is a token as a whole stays whole
  bool adds_bos = false;       // where the file does not say it
};

/// All that are known.
std::span<const GgufPreTokenizer> gguf_pre_tokenizers();

/// How its texts are cut into words.
Expected<std::vector<PreTokenizer::Step>> split_steps(const GgufPreTokenizer& pre);

}  // namespace anyslot
