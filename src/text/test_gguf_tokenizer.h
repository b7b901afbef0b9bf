#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/gguf_tokenizer.h"
#include "text/tokenizer.h"

namespace anyslot::testing_text {

/// The metadata of a GGUF file about its tokenizer, and the texts that they refer to.
struct GgufMetadata {
  std::vector<std::string> tokens;
  std::vector<std::string> merges;
  GgufTokenizer source;  // all but those texts

  Expected<Tokenizer> create() {
    token_views_.assign(tokens.begin(), tokens.end());
    merge_views_.assign(merges.begin(), merges.end());
    source.tokens = token_views_;
    source.merges = merge_views_;
    return Tokenizer::create(source);
  }

 private:
  std::vector<std::string_view> token_views_;
  std::vector<std::string_view> merge_views_;
};

inline Tokenizer must_create(GgufMetadata& metadata) {
  Expected<Tokenizer> tokenizer = metadata.create();
  if (!tokenizer) throw std::runtime_error(tokenizer.status().message());
  return *std::move(tokenizer);
}

}  // namespace anyslot::testing_text
