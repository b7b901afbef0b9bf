#pragma once

#include <string_view>
#include <variant>
#include <vector>

#include "anyslot/status.h"
#include "text/regex.h"

namespace anyslot {

/// Cuts every piece at the matches of a regular expression; matches and what lies between them are
/// pieces of their own.
struct SplitStep {
  Regex regex;
};

/// Puts a space before a piece that does not start with one.
struct PrefixSpaceStep {};

/// Cuts text into the words that the model encodes one by one. Thread-safe.
class PreTokenizer {
 public:
  using Step = std::variant<SplitStep, PrefixSpaceStep>;

  PreTokenizer() = default;
  explicit PreTokenizer(std::vector<Step> steps) : steps_(std::move(steps)) {}

  /// Calls `sink` for every word of `text` (valid UTF-8), in order; never with an empty word.
  /// Fails as Regex::split does.
  Status split(std::string_view text, const PieceSink& sink) const;

 private:
  Status run_from(size_t step, std::string_view piece, const PieceSink& sink) const;

  std::vector<Step> steps_;  // each cuts the pieces of the one before
};

}  // namespace anyslot
