#include "text/added_tokens.h"

#include <algorithm>

#include "text/utf8.h"

namespace anyslot {

namespace {

bool stands_alone(std::string_view text, ByteRange plain, size_t begin, size_t end) {
  const bool word_before =
      begin > plain.begin && is_word_character(last_code_point(text.substr(0, begin)));
  const bool word_behind = end < plain.end && is_word_character(first_code_point(text.substr(end)));
  return !word_before && !word_behind;
}

size_t skip_space_before(std::string_view text, size_t begin, size_t limit) {
  while (begin > limit) {
    const char32_t before = last_code_point(text.substr(0, begin));
    if (!is_white_space(before)) break;
    std::string encoded;
    append_code_point(encoded, before);
    if (begin - limit < encoded.size()) break;
    begin -= encoded.size();
  }
  return begin;
}

size_t skip_space_behind(std::string_view text, size_t end, size_t limit) {
  while (end < limit && is_white_space(first_code_point(text.substr(end)))) {
    const size_t size = next_utf8_unit(text.substr(end)).size;
    if (limit - end < size) break;
    end += size;
  }
  return end;
}

}  // namespace

AddedTokens::Trie::Trie() : nodes_(1) {}

int32_t AddedTokens::Trie::child(int32_t node, char byte) const {
  if (node == 0) return from_root_[static_cast<uint8_t>(byte)];
  for (const auto& [label, index] : nodes_[node].children) {
    if (label == byte) return index;
  }
  return 0;
}

void AddedTokens::Trie::insert(std::string_view content, int32_t token) {
  int32_t node = 0;
  for (const char byte : content) {
    int32_t next = child(node, byte);
    if (next == 0) {
      next = static_cast<int32_t>(nodes_.size());
      nodes_.emplace_back();
      if (node == 0) {
        from_root_[static_cast<uint8_t>(byte)] = next;
      } else {
        nodes_[node].children.emplace_back(byte, next);
      }
    }
    node = next;
  }
  nodes_[node].token = token;
}

int32_t AddedTokens::Trie::longest_prefix(std::string_view text) const {
  int32_t longest = kNone;
  int32_t node = 0;
  for (const char byte : text) {
    node = child(node, byte);
    if (node == 0) break;
    if (nodes_[node].token != kNone) longest = nodes_[node].token;
  }
  return longest;
}

AddedTokens::AddedTokens(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  for (size_t i = 0; i < tokens_.size(); ++i) {
    Trie& trie = tokens_[i].normalized ? normalized_ : exact_;
    trie.insert(tokens_[i].content, static_cast<int32_t>(i));
  }
}

std::vector<TextPiece> AddedTokens::split(std::string_view text,
                                          std::span<const ByteRange> markup) const {
  std::vector<TextPiece> pieces;
  split_plain(exact_, text, {0, text.size()}, markup, pieces);
  if (normalized_.empty()) return pieces;

  std::vector<TextPiece> finer;
  for (const TextPiece& piece : pieces) {
    if (piece.id != TextPiece::kPlain) {
      finer.push_back(piece);
    } else {
      split_plain(normalized_, text, {piece.begin, piece.end}, markup, finer);
    }
  }
  return finer;
}

void AddedTokens::split_plain(const Trie& trie, std::string_view text, ByteRange plain,
                              std::span<const ByteRange> markup,
                              std::vector<TextPiece>& pieces) const {
  size_t done = plain.begin;  // everything before this is in a piece
  const auto first = std::ranges::partition_point(
      markup, [&](const ByteRange& range) { return range.end <= plain.begin; });
  for (auto range = first; range != markup.end() && range->begin < plain.end; ++range) {
    const size_t low = std::max(range->begin, plain.begin);
    const size_t high = std::min(range->end, plain.end);
    for (size_t at = std::max(low, done); at < high;) {
      const int32_t index = trie.longest_prefix(text.substr(at, high - at));
      if (index == Trie::kNone) {
        ++at;
        continue;
      }
      const AddedToken& token = tokens_[index];
      size_t begin = at;
      size_t end = at + token.content.size();
      at = end;
      if (token.single_word && !stands_alone(text, plain, begin, end)) continue;
      if (token.lstrip) begin = skip_space_before(text, begin, std::max(low, done));
      if (token.rstrip) end = skip_space_behind(text, end, high);
      if (begin > done) pieces.push_back({done, begin, TextPiece::kPlain});
      pieces.push_back({begin, end, token.id});
      done = at = end;
    }
  }
  if (plain.end > done) pieces.push_back({done, plain.end, TextPiece::kPlain});
}

}  // namespace anyslot
