#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "anyslot/request.h"
#include "anyslot/status.h"
#include "text/bpe.h"
#include "text/regex.h"
#include "text/tokenizer_parts.h"

namespace anyslot {

/// Makes tokens of one text: added tokens, normalizer, added tokens once more, words, model.
class TextEncoder {
 public:
  /// `text`: valid UTF-8; `markup`: as Tokenizer::encode takes it. All must outlive this.
  TextEncoder(const TokenizerParts& parts, std::string_view text,
              std::span<const ByteRange> markup);

  /// Call it once. Fails as Regex::scan does.
  Expected<std::vector<int32_t>> run();

 private:
  Status encode_piece(const TextPiece& piece);
  Status encode_normalized(const MarkedText& text, bool at_begin);
  std::vector<ByteRange> markup_of(const TextPiece& piece) const;

  const TokenizerParts& parts_;
  std::string_view text_;
  std::span<const ByteRange> markup_;
  Bpe::Scratch scratch_;
  std::vector<int32_t> ids_;
  PieceSink encode_word_;
};

}  // namespace anyslot
