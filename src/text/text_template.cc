#include "text/text_template.h"

#include <algorithm>

namespace anyslot {

namespace {

/// The size of the "{name}" that `text` starts with; 0 when it is something else.
size_t placeholder_size(std::string_view text) {
  if (!text.starts_with('{')) return 0;
  size_t end = 1;
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  while (end < text.size() && (is_letter(text[end]) || (end > 1 && is_digit(text[end])))) ++end;
  return end > 1 && end < text.size() && text[end] == '}' ? end + 1 : 0;
}

std::string list_of(const std::vector<std::string_view>& names) {
  std::string list;
  for (const std::string_view name : names) {
    list += (list.empty() ? "{" : ", {") + std::string(name) + "}";
  }
  return list.empty() ? "none" : list;
}

}  // namespace

Expected<TextTemplate> TextTemplate::parse(std::string_view text,
                                           const std::vector<std::string_view>& known) {
  TextTemplate result;
  size_t literal = 0;  // everything before this is in a part
  for (size_t at = 0; at < text.size();) {
    const size_t size = placeholder_size(text.substr(at));
    if (size == 0) {
      ++at;
      continue;
    }
    const std::string name(text.substr(at + 1, size - 2));
    if (std::ranges::find(known, name) == known.end()) {
      return failed_precondition("unknown placeholder {" + name +
                                 "} (known here: " + list_of(known) + ")");
    }
    if (at > literal)
      result.parts_.push_back({false, std::string(text.substr(literal, at - literal))});
    result.parts_.push_back({true, name});
    at += size;
    literal = at;
  }
  if (literal < text.size()) result.parts_.push_back({false, std::string(text.substr(literal))});
  return result;
}

bool TextTemplate::has_placeholder(std::string_view name) const {
  return std::ranges::any_of(
      parts_, [name](const Part& part) { return part.placeholder && part.text == name; });
}

Segment TextTemplate::render(SegmentKind kind, const Values& values) const {
  Segment segment;
  segment.kind = kind;
  for (const Part& part : parts_) {
    if (!part.placeholder) {
      const size_t begin = segment.text.size();
      segment.text += part.text;
      segment.markup.push_back({begin, segment.text.size()});
      continue;
    }
    const auto value =
        std::ranges::find(values, part.text, [](const auto& entry) { return entry.first; });
    if (value != values.end()) segment.text += value->second;
  }
  return segment;
}

}  // namespace anyslot
