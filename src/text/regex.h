#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "anyslot/status.h"

namespace anyslot {

/// Takes the pieces of a text in order. A view is valid during the call only.
using PieceSink = std::function<void(std::string_view piece)>;
/// Takes what a text consists of, in order: matches, which may be empty, and what lies between
/// them, which is not. The views are of the text.
using MatchSink = std::function<void(std::string_view piece, bool is_match)>;

/// A regular expression of a tokenizer.json, run by PCRE2 (UTF, Unicode properties, JIT where the
/// machine has it). Such expressions are written for Oniguruma; what PCRE2 would read differently
/// is translated or refused. Const calls are thread-safe.
class Regex {
 public:
  /// Fails with kFailedPrecondition for a bad or an unsupported pattern.
  static Expected<Regex> compile(std::string_view pattern);

  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;
  ~Regex();

  /// Calls `sink` for every match and for every stretch between matches, in order. `text` must be
  /// valid UTF-8. Fails with kInvalidArgument when a match needs more backtracking or memory than
  /// is allowed.
  Status scan(std::string_view text, const MatchSink& sink) const;

 private:
  struct Impl;
  explicit Regex(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// `pattern` in PCRE2's dialect with the meaning that Oniguruma gives it, for compile().
Expected<std::string> translate_from_oniguruma(std::string_view pattern);

}  // namespace anyslot
