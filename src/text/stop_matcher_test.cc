#include "text/stop_matcher.h"

#include <gtest/gtest.h>

#include <random>

namespace anyslot {
namespace {

using Strings = std::vector<std::string>;

StopMatcher make_matcher(const Strings& strings, bool include_match) {
  return {std::make_shared<const StopPatterns>(strings), include_match};
}

struct Outcome {
  std::string text;
  std::optional<size_t> match;
  bool operator==(const Outcome&) const = default;
};

/// What the first complete string leaves of `text`, found by trying every end; ends up to
/// `armed_from` bytes do not count.
Outcome reference(const Strings& strings, const std::string& text, bool include_match,
                  size_t armed_from = 0) {
  for (size_t end = armed_from + 1; end <= text.size(); ++end) {
    std::optional<size_t> match;
    for (size_t i = 0; i < strings.size(); ++i) {
      if (!std::string_view(text).substr(0, end).ends_with(strings[i])) continue;
      if (!match || strings[i].size() > strings[*match].size()) match = i;
    }
    if (match) return {text.substr(0, end - (include_match ? 0 : strings[*match].size())), match};
  }
  return {text, std::nullopt};
}

Outcome match_in_pieces(StopMatcher matcher, const std::string& text, std::mt19937& random,
                        size_t armed_from = 0) {
  Outcome outcome;
  for (size_t begin = 0; begin < text.size() && !matcher.match();) {
    size_t end = std::min(text.size(), begin + 1 + random() % 4);
    if (begin < armed_from) end = std::min(end, armed_from);
    outcome.text += matcher.push(text.substr(begin, end - begin), begin >= armed_from);
    begin = end;
  }
  outcome.match = matcher.match();
  if (!outcome.match) outcome.text += matcher.flush();
  EXPECT_EQ(matcher.flush(), "") << "nothing is left";
  return outcome;
}

std::string random_string(std::mt19937& random, size_t length) {
  std::string string(length, 'a');
  for (char& byte : string) byte = static_cast<char>('a' + random() % 2);
  return string;
}

// Two letters, so that strings overlap themselves and each other at every turn.
TEST(StopMatcher, FindsTheFirstCompleteStringHoweverTheTextIsCut) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int trial = 0; trial < 20000; ++trial) {
    Strings strings;
    for (size_t count = random() % 4; count > 0; --count)
      strings.push_back(random_string(random, 1 + random() % 7));
    const std::string text = random_string(random, random() % 30);
    const size_t armed_from = random() % 2 == 0 ? 0 : random() % (text.size() + 1);
    for (const bool include : {false, true}) {
      ASSERT_EQ(match_in_pieces(make_matcher(strings, include), text, random, armed_from),
                reference(strings, text, include, armed_from))
          << text << " from " << armed_from << ": " << testing::PrintToString(strings);
    }
  }
}

TEST(StopMatcher, HoldsBackOnlyWhatMayBeTheBeginning) {
  StopMatcher matcher = make_matcher({"\n\n", "END!"}, false);
  EXPECT_EQ(matcher.push("one\n", true), "one");
  EXPECT_EQ(matcher.push("two", true), "\ntwo");
  EXPECT_EQ(matcher.push("E", true), "");
  EXPECT_EQ(matcher.push("EN", true), "E");
  EXPECT_EQ(matcher.push("D", true), "");
  EXPECT_EQ(matcher.flush(), "END");
  EXPECT_EQ(matcher.match(), std::nullopt);
}

TEST(StopMatcher, OfSeveralCompleteAtOnceTheLongestCounts) {
  StopMatcher matcher = make_matcher({"b", "aab", "ab"}, false);
  EXPECT_EQ(matcher.push("xaab and more", true), "x");
  EXPECT_EQ(matcher.match(), 1U);
}

TEST(StopMatcher, WhenTheMatchIsShownNothingIsHeldBack) {
  StopMatcher matcher = make_matcher({"END"}, true);
  EXPECT_EQ(matcher.push("xEN", true), "xEN");
  EXPECT_EQ(matcher.push("Dy", true), "D");
  EXPECT_EQ(matcher.match(), 0U);
}

TEST(StopMatcher, MatchersThatSharePatternsMatchEachForItself) {
  const auto patterns = std::make_shared<const StopPatterns>(Strings{"END"});
  StopMatcher first(patterns, false);
  StopMatcher second(patterns, false);
  EXPECT_EQ(first.push("xEN", true), "x");
  EXPECT_EQ(second.push("D", true), "D");
  EXPECT_EQ(first.push("D", true), "");
  EXPECT_EQ(first.match(), 0U);
  EXPECT_EQ(second.match(), std::nullopt);
}

TEST(StopMatcher, WithoutPatternsEverythingPasses) {
  StopMatcher matcher(nullptr, false);
  EXPECT_EQ(matcher.push("text", true), "text");
  EXPECT_EQ(matcher.flush(), "");
  EXPECT_EQ(matcher.match(), std::nullopt);
}

}  // namespace
}  // namespace anyslot
