#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "anyslot/request.h"
#include "anyslot/status.h"
#include "base/hash.h"

namespace anyslot {

struct GgufTokenizer;
struct TokenizerDescription;
struct TokenizerParts;

/// A tokenizer with byte-pair encoding, such as a Hugging Face tokenizer.json describes. All calls
/// are const and thread-safe.
class Tokenizer {
 public:
  /// Texts longer than this are refused, in bytes.
  static constexpr size_t kMaxTextBytes = size_t{256} << 20;

  /// Fails with kNotFound, or with kFailedPrecondition for a file that is broken or that asks for
  /// something unsupported; the message names the file and the field.
  static Expected<Tokenizer> load(const std::string& tokenizer_json_path);
  /// The tokenizer that a GGUF file describes. Fails with kFailedPrecondition in the same way.
  static Expected<Tokenizer> create(const GgufTokenizer& source);
  /// Fails with kFailedPrecondition for a description that cannot work.
  static Expected<Tokenizer> make(TokenizerDescription description);

  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  /// Token ids of a text that stands alone, without BOS. Special and other added tokens match only
  /// where they lie wholly inside one range of `markup` (ascending, disjoint); everything else is
  /// plain text. (Added tokens that are text by their authors' account match everywhere: white
  /// space and, of a SentencePiece vocabulary, its own symbols that are not special.) Apart from
  /// that, markup and content go through one pass: a word may begin in one and end in the other.
  /// Fails with kInvalidArgument for invalid UTF-8 (with the byte offset), bad ranges or a text
  /// that is too long.
  Expected<std::vector<int32_t>> encode(std::string_view text,
                                        std::span<const ByteRange> markup = {}) const;

  /// What the file's post-processor puts around a single sequence, usually BOS.
  std::vector<int32_t> add_special_tokens(std::span<const int32_t> ids) const;

  /// Bytes that form no character become U+FFFD (see StreamingDetokenizer). Ids without a token
  /// give nothing.
  std::string decode(std::span<const int32_t> ids, bool skip_special_tokens) const;

  /// The id of a token by its name in the file, e.g. "<|eot_id|>".
  std::optional<int32_t> token_id(std::string_view name) const;
  /// The name of a token as the file writes it; empty for an id without a token.
  std::string_view token_name(int32_t id) const;
  /// The bytes that a token decodes to inside a text, perhaps a part of a character; empty for an
  /// id without a token.
  std::string_view token_bytes(int32_t id) const;
  bool is_special(int32_t id) const;
  /// The largest id plus one.
  int32_t vocab_size() const;
  /// Whether words are bytes, as in GPT-2; else they are characters, as in SentencePiece.
  bool is_byte_level() const;

  /// SHA-256 of the tokenizer.json, or of what else it was made from.
  const Digest& fingerprint() const;

  /// For the rest of this folder.
  const TokenizerParts& parts() const { return *parts_; }

 private:
  explicit Tokenizer(std::unique_ptr<const TokenizerParts> parts);
  std::unique_ptr<const TokenizerParts> parts_;
};

}  // namespace anyslot
