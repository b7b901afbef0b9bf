#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "anyslot/status.h"
#include "text/tokenizer_description.h"

namespace anyslot {

/// What the metadata of a GGUF file say about its tokenizer: the keys of these names under
/// tokenizer.ggml. What they do not say is empty. Texts belong to somebody else.
struct GgufTokenizer {
  std::string where;  // begins every message
  std::string_view model;
  std::string_view pre;
  std::span<const std::string_view> tokens;  // by id
  std::vector<int64_t> token_type;           // by id
  std::vector<double> scores;                // by id
  std::span<const std::string_view> merges;
  std::optional<int64_t> bos_token_id;
  std::optional<int64_t> eos_token_id;
  std::optional<int64_t> unknown_token_id;
  std::optional<bool> add_bos_token;
  std::optional<bool> add_eos_token;
  std::optional<bool> add_space_prefix;
  bool of_phi3 = false;  // general.architecture: no key says what is particular to its tokens

  /// Empty without such a token.
  std::string_view token_name(std::optional<int64_t> id) const;
};

/// Fails with kFailedPrecondition for what is broken or not supported.
Expected<TokenizerDescription> read_gguf_tokenizer(const GgufTokenizer& source);

}  // namespace anyslot
