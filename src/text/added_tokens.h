#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "anyslot/request.h"

namespace anyslot {

/// A token that is found in the text as it is written, before the model sees it.
struct AddedToken {
  int32_t id = 0;
  std::string content;       // not empty; of a normalized one what normalizing makes of it
  bool single_word = false;  // only where no word character touches it
  bool lstrip = false;       // takes the white space before it along
  bool rstrip = false;       // takes the white space behind it along
  bool normalized = false;   // looked for in what the others have left, once that is normalized
  bool anywhere = false;     // in content too, not only in markup
};

/// A stretch of a text: one added token, or text for the model.
struct TextPiece {
  static constexpr int32_t kPlain = -1;
  size_t begin = 0;
  size_t end = 0;
  int32_t id = kPlain;
};

/// Finds added tokens: at the leftmost place the longest one. Thread-safe.
class AddedTokens {
 public:
  AddedTokens() = default;
  explicit AddedTokens(std::vector<AddedToken> tokens);

  /// Cuts `text` into pieces that cover it, at the tokens that are not normalized. Unless it may
  /// stand anywhere, a token counts only when it lies wholly in one range of `markup` (ascending,
  /// disjoint, inside the text), and takes white space from that range only.
  std::vector<TextPiece> split(std::string_view text, std::span<const ByteRange> markup) const {
    return split(exact_, text, markup);
  }
  /// The same at the normalized ones, for a text that is normalized.
  std::vector<TextPiece> split_normalized(std::string_view text,
                                          std::span<const ByteRange> markup) const {
    return split(normalized_, text, markup);
  }
  bool has_normalized() const { return !normalized_.empty(); }

 private:
  /// The contents of some tokens as a tree of bytes, and their indices in tokens_.
  class Trie {
   public:
    Trie();
    void insert(const AddedToken& token, int32_t index);
    /// The longest token that stands at `at` and ends by `any_end`, or by `markup_end` if it may
    /// not stand anywhere; or kNone.
    int32_t longest(std::string_view text, size_t at, size_t any_end, size_t markup_end) const;
    bool empty() const { return nodes_.size() == 1; }
    bool has_anywhere() const { return has_anywhere_; }

    static constexpr int32_t kNone = -1;

   private:
    struct Node {
      std::vector<std::pair<char, int32_t>> children;
      int32_t token = kNone;  // the token that ends here
      bool anywhere = false;  // of that token
    };
    int32_t child(int32_t node, char byte) const;

    std::vector<Node> nodes_;
    std::array<int32_t, 256> from_root_{};  // 0: none
    bool has_anywhere_ = false;
  };

  std::vector<TextPiece> split(const Trie& trie, std::string_view text,
                               std::span<const ByteRange> markup) const;

  std::vector<AddedToken> tokens_;
  Trie exact_;
  Trie normalized_;
};

}  // namespace anyslot
