#include "text/stop_matcher.h"

#include <algorithm>
#include <utility>

namespace anyslot {

namespace {

std::vector<size_t> borders(std::string_view string) {
  std::vector<size_t> border(string.size(), 0);
  for (size_t i = 1; i < string.size(); ++i) {
    size_t length = border[i - 1];
    while (length > 0 && string[length] != string[i]) length = border[length - 1];
    border[i] = length + (string[length] == string[i] ? 1 : 0);
  }
  return border;
}

}  // namespace

bool StopMatcher::Pattern::advance(char byte) {
  if (matched == string.size()) matched = border.back();  // an earlier one that was no match
  while (matched > 0 && string[matched] != byte) matched = border[matched - 1];
  if (string[matched] == byte) ++matched;
  return matched == string.size();
}

StopMatcher::StopMatcher(const std::vector<std::string>& strings, bool include_match)
    : include_match_(include_match) {
  for (const std::string& string : strings) patterns_.push_back({string, borders(string)});
}

size_t StopMatcher::longest_beginning() const {
  size_t longest = 0;
  for (const Pattern& pattern : patterns_) {
    const bool complete = pattern.matched == pattern.string.size();
    longest = std::max(longest, complete ? pattern.border.back() : pattern.matched);
  }
  return longest;
}

std::string StopMatcher::push(std::string_view piece, bool may_match) {
  for (const char byte : piece) {
    held_ += byte;
    for (size_t i = 0; i < patterns_.size(); ++i) {
      if (!patterns_[i].advance(byte) || !may_match) continue;
      const bool longer = !match_ || patterns_[i].string.size() > patterns_[*match_].string.size();
      if (longer) match_ = i;
    }
    if (!match_) continue;
    if (!include_match_) held_.erase(held_.size() - patterns_[*match_].string.size());
    return flush();
  }
  const size_t held_back = include_match_ ? 0 : longest_beginning();
  std::string text = held_.substr(0, held_.size() - held_back);
  held_.erase(0, text.size());
  return text;
}

std::string StopMatcher::flush() { return std::exchange(held_, {}); }

}  // namespace anyslot
