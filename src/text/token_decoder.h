#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "anyslot/status.h"
#include "text/pattern.h"

namespace anyslot {

struct ReplaceTokenStep {
  Pattern pattern;
  std::string content;
};

/// Takes up to `start` times `character` away at the beginning, and up to `stop` times at the end.
struct StripTokenStep {
  std::string character;
  size_t start = 0;
  size_t stop = 0;
};

/// Turns each `replacement` into a space; with `drops_first`, those of the first token into
/// nothing.
struct MetaspaceTokenStep {
  std::string replacement;  // one character
  bool drops_first = false;
};

/// How the names of tokens become text, one after the other. Thread-safe.
class TokenDecoder {
 public:
  using Step = std::variant<ReplaceTokenStep, StripTokenStep, MetaspaceTokenStep>;

  struct Options {
    bool byte_level = false;     // names are in the byte-level alphabet; nothing else is then done
    std::vector<Step> steps;     // on each name by itself
    bool byte_fallback = false;  // <0x00> to <0xFF> are bytes, see StreamingDetokenizer
    StripTokenStep strip;        // at the beginning of the whole text; `stop` is not supported
  };

  struct Text {
    std::string bytes;
    bool is_byte = false;  // one of <0x00> to <0xFF>
  };

  TokenDecoder() = default;
  explicit TokenDecoder(Options options) : options_(std::move(options)) {}

  /// What a token with this name (valid UTF-8) stands for; `is_first`: no other stands before it.
  /// Fails as Regex::scan does.
  Expected<Text> text_of(std::string_view name, bool is_first) const;

  /// Whether text_of depends on `is_first`.
  bool first_differs() const;
  bool byte_level() const { return options_.byte_level; }
  const StripTokenStep& strip() const { return options_.strip; }

 private:
  Options options_;
};

/// `text` without `character` at its ends, as far as the step says.
std::string_view stripped(std::string_view text, const StripTokenStep& step);

}  // namespace anyslot
