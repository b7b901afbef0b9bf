#include "text/stop_matcher.h"

#include <algorithm>
#include <utility>

namespace anyslot {

namespace {

std::vector<uint32_t> borders(std::string_view string) {
  std::vector<uint32_t> border(string.size(), 0);
  for (size_t i = 1; i < string.size(); ++i) {
    uint32_t length = border[i - 1];
    while (length > 0 && string[length] != string[i]) length = border[length - 1];
    border[i] = length + (string[length] == string[i] ? 1 : 0);
  }
  return border;
}

}  // namespace

StopPatterns::StopPatterns(const std::vector<std::string>& strings) {
  patterns_.reserve(strings.size());
  for (const std::string& string : strings) patterns_.push_back({string, borders(string)});
}

uint32_t StopPatterns::beginning(size_t index, uint32_t matched) const {
  const Pattern& pattern = patterns_[index];
  return matched == pattern.string.size() ? pattern.border.back() : matched;
}

uint32_t StopPatterns::advance(size_t index, uint32_t matched, char byte) const {
  const Pattern& pattern = patterns_[index];
  matched = beginning(index, matched);  // one that was complete before was no match
  while (matched > 0 && pattern.string[matched] != byte) matched = pattern.border[matched - 1];
  return matched + (pattern.string[matched] == byte ? 1 : 0);
}

StopMatcher::StopMatcher(std::shared_ptr<const StopPatterns> patterns, bool include_match)
    : patterns_(std::move(patterns)),
      matched_(patterns_ == nullptr ? 0 : patterns_->size(), 0),
      include_match_(include_match) {}

size_t StopMatcher::longest_beginning() const {
  uint32_t longest = 0;
  for (size_t i = 0; i < matched_.size(); ++i) {
    longest = std::max(longest, patterns_->beginning(i, matched_[i]));
  }
  return longest;
}

void StopMatcher::advance(char byte, bool may_match) {
  for (size_t i = 0; i < matched_.size(); ++i) {
    matched_[i] = patterns_->advance(i, matched_[i], byte);
    const bool is_complete = matched_[i] == patterns_->length(i);
    if (!is_complete || !may_match) continue;
    if (!match_ || patterns_->length(i) > patterns_->length(*match_)) match_ = i;
  }
}

std::string StopMatcher::push(std::string_view piece, bool may_match) {
  for (const char byte : piece) {
    held_ += byte;
    advance(byte, may_match);
    if (!match_) continue;
    if (!include_match_) held_.erase(held_.size() - patterns_->length(*match_));
    return flush();
  }
  const size_t held_back = include_match_ ? 0 : longest_beginning();
  std::string text = held_.substr(0, held_.size() - held_back);
  held_.erase(0, text.size());
  return text;
}

std::string StopMatcher::flush() { return std::exchange(held_, {}); }

}  // namespace anyslot
