#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "anyslot/request.h"
#include "anyslot/status.h"
#include "text/pattern.h"

namespace anyslot {

/// A text, and which parts of it are markup (ascending, disjoint).
struct MarkedText {
  std::string text;
  std::vector<ByteRange> markup;
};

/// The normalization forms of the Unicode standard (annex 15).
enum class UnicodeForm : uint8_t { kNfc, kNfd, kNfkc, kNfkd };

struct UnicodeFormStep {
  UnicodeForm form = UnicodeForm::kNfc;
};

/// Each character in lower case, whatever stands around it.
struct LowercaseStep {};

/// Takes white space away at the ends.
struct TrimStep {
  bool left = true;
  bool right = true;
};

/// Puts `text` before a text that is not empty.
struct PrependStep {
  std::string text;
};

struct ReplaceStep {
  Pattern pattern;
  std::string content;
};

/// What happens to a text before it is cut into words. Thread-safe.
class Normalizer {
 public:
  using Step = std::variant<UnicodeFormStep, LowercaseStep, TrimStep, PrependStep, ReplaceStep>;

  Normalizer() = default;
  explicit Normalizer(std::vector<Step> steps) : steps_(std::move(steps)) {}

  bool empty() const { return steps_.empty(); }

  /// `text` must be valid UTF-8. What a step makes of some characters is markup when all of them
  /// lie in one range of it. Fails as Regex::scan does.
  Expected<MarkedText> run(std::string_view text, std::span<const ByteRange> markup = {}) const;

 private:
  std::vector<Step> steps_;
};

}  // namespace anyslot
