#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace anyslot {

/// Finds the first of some strings to be complete in a text that comes in pieces; of several that
/// end at the same place, the longest. How the text is cut into pieces makes no difference.
class StopMatcher {
 public:
  /// The strings must not be empty. With `include_match` the text that is let through ends with the
  /// match, else before it.
  StopMatcher(const std::vector<std::string>& strings, bool include_match);

  /// Takes the next piece and returns what is let through: without include_match, text that may be
  /// the beginning of a match is held back. A string that is complete within this piece is a match
  /// only if `may_match`, else it is text like any other. After a match nothing may follow.
  std::string push(std::string_view piece, bool may_match);
  /// The text held back, when the text ends without a match.
  std::string flush();

  /// Index into `strings`, once one was found.
  std::optional<size_t> match() const { return match_; }

 private:
  /// The automaton of Knuth, Morris and Pratt.
  struct Pattern {
    std::string string;
    std::vector<size_t> border;  // of the first i + 1 bytes: their longest proper prefix and suffix
    size_t matched = 0;          // bytes of `string` that the text so far ends with

    /// Whether the string is complete with this byte.
    bool advance(char byte);
  };
  size_t longest_beginning() const;

  std::vector<Pattern> patterns_;
  bool include_match_;
  std::string held_;
  std::optional<size_t> match_;
};

}  // namespace anyslot
