#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace anyslot {

/// Strings to stop at, prepared for matching: for each the automaton of Knuth, Morris and Pratt.
/// Costs a few bytes per byte, so that the matchers of a request share one.
class StopPatterns {
 public:
  /// The strings must not be empty.
  explicit StopPatterns(const std::vector<std::string>& strings);

  size_t size() const { return patterns_.size(); }
  size_t length(size_t index) const { return patterns_[index].string.size(); }
  /// `matched` bytes of the string end the text so far: how many do after one more byte. The whole
  /// string may have been matched before.
  uint32_t advance(size_t index, uint32_t matched, char byte) const;
  /// The longest beginning of the string, short of the whole, that a text ends with of which
  /// `matched` bytes match.
  uint32_t beginning(size_t index, uint32_t matched) const;

 private:
  struct Pattern {
    std::string string;
    std::vector<uint32_t> border;  // of the first i + 1 bytes: their longest proper prefix and
                                   // suffix
  };
  std::vector<Pattern> patterns_;
};

/// Finds the first of some strings to be complete in a text that comes in pieces; of several that
/// end at the same place, the longest. How the text is cut into pieces makes no difference.
class StopMatcher {
 public:
  /// `patterns`: null for none. With `include_match` the text that is let through ends with the
  /// match, else before it.
  StopMatcher(std::shared_ptr<const StopPatterns> patterns, bool include_match);

  /// Takes the next piece and returns what is let through: without include_match, text that may be
  /// the beginning of a match is held back. A string that is complete within this piece is a match
  /// only if `may_match`, else it is text like any other. After a match nothing may follow.
  std::string push(std::string_view piece, bool may_match);
  /// The text held back, when the text ends without a match.
  std::string flush();

  /// Index into the patterns, once one was found.
  std::optional<size_t> match() const { return match_; }

 private:
  void advance(char byte, bool may_match);
  size_t longest_beginning() const;

  std::shared_ptr<const StopPatterns> patterns_;
  std::vector<uint32_t> matched_;  // of each pattern: bytes of it that the text so far ends with
  bool include_match_;
  std::string held_;
  std::optional<size_t> match_;
};

}  // namespace anyslot
