#include "text/added_tokens.h"

#include <algorithm>

#include "text/utf8.h"

namespace anyslot {

namespace {

bool stands_alone(std::string_view text, size_t begin, size_t end) {
  const bool word_before = begin > 0 && is_word_character(last_code_point(text.substr(0, begin)));
  const bool word_behind =
      end < text.size() && is_word_character(first_code_point(text.substr(end)));
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

void AddedTokens::Trie::insert(const AddedToken& token, int32_t index) {
  int32_t node = 0;
  for (const char byte : token.content) {
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
  nodes_[node].token = index;
  nodes_[node].anywhere = token.anywhere;
  has_anywhere_ = has_anywhere_ || token.anywhere;
}

int32_t AddedTokens::Trie::longest(std::string_view text, size_t at, size_t any_end,
                                   size_t markup_end) const {
  int32_t longest = kNone;
  int32_t node = 0;
  while (at < any_end) {
    node = child(node, text[at++]);
    if (node == 0) break;
    const Node& here = nodes_[node];
    if (here.token != kNone && (here.anywhere || at <= markup_end)) longest = here.token;
  }
  return longest;
}

AddedTokens::AddedTokens(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  for (size_t i = 0; i < tokens_.size(); ++i) {
    Trie& trie = tokens_[i].normalized ? normalized_ : exact_;
    trie.insert(tokens_[i], static_cast<int32_t>(i));
  }
}

std::vector<TextPiece> AddedTokens::split(const Trie& trie, std::string_view text,
                                          std::span<const ByteRange> markup) const {
  std::vector<TextPiece> pieces;
  size_t done = 0;  // everything before this is in a piece
  auto range = markup.begin();
  for (size_t at = 0; at < text.size();) {
    while (range != markup.end() && range->end <= at) ++range;
    const bool in_markup = range != markup.end() && range->begin <= at;
    if (!in_markup && !trie.has_anywhere()) {
      if (range == markup.end()) break;
      at = range->begin;
      continue;
    }
    const size_t markup_end = in_markup ? range->end : at;
    const size_t any_end = trie.has_anywhere() ? text.size() : markup_end;
    const int32_t index = trie.longest(text, at, any_end, markup_end);
    if (index == Trie::kNone) {
      ++at;
      continue;
    }
    const AddedToken& token = tokens_[index];
    size_t begin = at;
    size_t end = at + token.content.size();
    at = end;
    if (token.single_word && !stands_alone(text, begin, end)) continue;
    const size_t low = token.anywhere ? 0 : range->begin;
    if (token.lstrip) begin = skip_space_before(text, begin, std::max(low, done));
    if (token.rstrip) end = skip_space_behind(text, end, token.anywhere ? any_end : markup_end);
    if (begin > done) pieces.push_back({done, begin, TextPiece::kPlain});
    pieces.push_back({begin, end, token.id});
    done = at = end;
  }
  if (text.size() > done) pieces.push_back({done, text.size(), TextPiece::kPlain});
  return pieces;
}

}  // namespace anyslot
