#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "anyslot/request.h"
#include "anyslot/status.h"

namespace anyslot {

/// A text with placeholders, "{name}". Any other brace stands for itself.
class TextTemplate {
 public:
  using Values = std::vector<std::pair<std::string_view, std::string_view>>;  // name, value

  /// Fails with kFailedPrecondition for a placeholder that is not in `known`.
  static Expected<TextTemplate> parse(std::string_view text,
                                      const std::vector<std::string_view>& known);

  bool has_placeholder(std::string_view name) const;

  /// The text with every placeholder replaced by its value, once: values are never searched for
  /// placeholders. `markup` of the result covers what the template wrote and nothing of the values.
  Segment render(SegmentKind kind, const Values& values) const;

 private:
  struct Part {
    bool placeholder = false;
    std::string text;  // what to write, or the placeholder's name
  };
  std::vector<Part> parts_;
};

}  // namespace anyslot
