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
  std::string content;       // not empty
  bool single_word = false;  // only where no word character touches it
  bool lstrip = false;       // takes the white space before it along
  bool rstrip = false;       // takes the white space behind it along
  bool normalized = false;   // looked for in what the others have left
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

  /// Cuts `text` into pieces that cover it. A token counts only when it lies wholly in one range of
  /// `markup` (ascending, disjoint, inside the text), and takes white space from that range only.
  std::vector<TextPiece> split(std::string_view text, std::span<const ByteRange> markup) const;

 private:
  /// The contents of some tokens as a tree of bytes, and their indices in tokens_.
  class Trie {
   public:
    Trie();
    void insert(std::string_view content, int32_t token);
    /// The longest token that `text` starts with, or kNone.
    int32_t longest_prefix(std::string_view text) const;
    bool empty() const { return nodes_.size() == 1; }

    static constexpr int32_t kNone = -1;

   private:
    struct Node {
      std::vector<std::pair<char, int32_t>> children;
      int32_t token = kNone;  // the token that ends here
    };
    int32_t child(int32_t node, char byte) const;

    std::vector<Node> nodes_;
    std::array<int32_t, 256> from_root_{};  // 0: none
  };

  /// Appends the pieces of [begin, end) of the text.
  void split_plain(const Trie& trie, std::string_view text, ByteRange plain,
                   std::span<const ByteRange> markup, std::vector<TextPiece>& pieces) const;

  std::vector<AddedToken> tokens_;
  Trie exact_;
  Trie normalized_;
};

}  // namespace anyslot
