#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "anyslot/status.h"
#include "text/pattern.h"

namespace anyslot {

/// The expression of GPT-2's words, which ByteLevel has by itself.
inline constexpr std::string_view kGpt2Words =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

/// What becomes of a match and its neighbours, with the names of tokenizer.json.
enum class SplitBehavior : uint8_t {
  kIsolated,            // each match is a piece
  kRemoved,             // matches go
  kMergedWithPrevious,  // a match ends the piece before it
  kMergedWithNext,      // a match begins the piece behind it
  kContiguous,          // matches that touch are one piece
};

/// Cuts every piece at the matches of a pattern. `invert`: at what does not match.
struct SplitStep {
  Pattern pattern;
  SplitBehavior behavior = SplitBehavior::kIsolated;
  bool invert = false;
};

enum class CharacterKind : uint8_t { kWhiteSpace, kNumeric, kPunctuation };

/// Cuts every piece at the characters of a kind.
struct KindSplitStep {
  CharacterKind kind = CharacterKind::kWhiteSpace;
  SplitBehavior behavior = SplitBehavior::kIsolated;
};

/// Keeps runs of word characters, and runs of what is neither that nor white space.
struct WordsStep {};

/// Puts a space before a piece that does not start with one.
struct PrefixSpaceStep {};

/// Writes spaces as `replacement` and, as `prepend` says, one before a piece that has none there;
/// then, with `split`, cuts before each.
struct MetaspaceStep {
  enum class Prepend : uint8_t { kNever, kAlways, kFirst };  // kFirst: where the text begins
  std::string replacement;                                   // one character
  Prepend prepend = Prepend::kAlways;
  bool split = true;
};

/// Cuts text into the words that the model encodes one by one. Thread-safe.
class PreTokenizer {
 public:
  using Step = std::variant<SplitStep, KindSplitStep, WordsStep, PrefixSpaceStep, MetaspaceStep>;

  PreTokenizer() = default;
  explicit PreTokenizer(std::vector<Step> steps) : steps_(std::move(steps)) {}

  /// Calls `sink` for every word of `text` (valid UTF-8), in order; never with an empty word.
  /// `at_begin`: nothing stands before `text`. Fails as Regex::scan does.
  Status split(std::string_view text, const PieceSink& sink, bool at_begin = true) const;

 private:
  class Run;

  std::vector<Step> steps_;  // each cuts the pieces of the one before
};

}  // namespace anyslot
