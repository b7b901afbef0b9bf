#include "text/text_encoder.h"

#include <algorithm>

namespace anyslot {

TextEncoder::TextEncoder(const TokenizerParts& parts, std::string_view text,
                         std::span<const ByteRange> markup)
    : parts_(parts),
      text_(text),
      markup_(markup),
      scratch_(text.size()),
      encode_word_(
          [this](std::string_view word) { parts_.model.encode_word(word, scratch_, ids_); }) {
  ids_.reserve(text.size() / 3);
}

Expected<std::vector<int32_t>> TextEncoder::run() {
  for (const TextPiece& piece : parts_.added_tokens.split(text_, markup_)) {
    if (piece.id != TextPiece::kPlain) {
      ids_.push_back(piece.id);
    } else if (Status status = encode_piece(piece); !status.ok()) {
      return status;
    }
  }
  return std::move(ids_);
}

Status TextEncoder::encode_piece(const TextPiece& piece) {
  const std::string_view text = text_.substr(piece.begin, piece.end - piece.begin);
  const bool at_begin = piece.begin == 0;
  const bool has_normalized = parts_.added_tokens.has_normalized();
  if (parts_.normalizer.empty() && !has_normalized) {
    return parts_.pre_tokenizer.split(text, encode_word_, at_begin);
  }
  const Expected<MarkedText> normalized =
      parts_.normalizer.run(text, has_normalized ? markup_of(piece) : std::vector<ByteRange>());
  if (!normalized) return normalized.status();
  if (!has_normalized) {
    return parts_.pre_tokenizer.split(normalized->text, encode_word_, at_begin);
  }
  return encode_normalized(*normalized, at_begin);
}

Status TextEncoder::encode_normalized(const MarkedText& text, bool at_begin) {
  for (const TextPiece& piece : parts_.added_tokens.split_normalized(text.text, text.markup)) {
    if (piece.id != TextPiece::kPlain) {
      ids_.push_back(piece.id);
      continue;
    }
    const std::string_view plain =
        std::string_view(text.text).substr(piece.begin, piece.end - piece.begin);
    Status status = parts_.pre_tokenizer.split(plain, encode_word_, at_begin && piece.begin == 0);
    if (!status.ok()) return status;
  }
  return {};
}

/// The markup inside a piece, counted from its beginning.
std::vector<ByteRange> TextEncoder::markup_of(const TextPiece& piece) const {
  std::vector<ByteRange> inside;
  const auto first = std::ranges::partition_point(
      markup_, [&](const ByteRange& range) { return range.end <= piece.begin; });
  for (auto range = first; range != markup_.end() && range->begin < piece.end; ++range) {
    const size_t begin = std::max(range->begin, piece.begin);
    const size_t end = std::min(range->end, piece.end);
    if (begin < end) inside.push_back({begin - piece.begin, end - piece.begin});
  }
  return inside;
}

}  // namespace anyslot
