#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "anyslot/status.h"
#include "text/regex.h"

namespace anyslot {

/// What a tokenizer looks for in a text. Const calls are thread-safe.
class Pattern {
 public:
  explicit Pattern(Regex regex) : form_(std::move(regex)) {}
  /// A text as it stands; must not be empty.
  explicit Pattern(std::string literal) : form_(std::move(literal)) {}

  /// Calls `sink` as Regex::scan does, and fails as that does.
  Status scan(std::string_view text, const MatchSink& sink) const;

 private:
  std::variant<std::string, Regex> form_;
};

}  // namespace anyslot
