#include "text/pre_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "text/pre_tokenizer_reader.h"

namespace anyslot {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

Words split(const PreTokenizer& pre_tokenizer, std::string_view text) {
  Words words;
  const Status status =
      pre_tokenizer.split(text, [&](std::string_view word) { words.emplace_back(word); });
  EXPECT_TRUE(status.ok()) << status.message();
  return words;
}

PreTokenizer regex_split(const std::string& pattern) {
  Expected<Regex> regex = Regex::compile(pattern);
  if (!regex) throw std::runtime_error(regex.status().message());
  std::vector<PreTokenizer::Step> steps;
  steps.emplace_back(SplitStep{Pattern(*std::move(regex))});
  return PreTokenizer(std::move(steps));
}

PreTokenizer pre_tokenizer_of(const json& object) {
  Expected<PreTokenizerFields> read = read_pre_tokenizer(object, "");
  if (!read) throw std::runtime_error(read.status().message());
  return PreTokenizer(std::move(read->steps));
}

PreTokenizer byte_level(bool add_prefix_space, bool use_regex) {
  return pre_tokenizer_of(
      {{"type", "ByteLevel"}, {"add_prefix_space", add_prefix_space}, {"use_regex", use_regex}});
}

TEST(Regex, MatchesAndGapsArePieces) {
  EXPECT_THAT(split(regex_split("[0-9]+"), "ab12c345"), ElementsAre("ab", "12", "c", "345"));
  EXPECT_THAT(split(regex_split("[0-9]+"), "abc"), ElementsAre("abc"));
  EXPECT_THAT(split(regex_split("[0-9]+"), ""), ElementsAre());
}

TEST(Regex, AnEmptyMatchCutsAndNeverLoops) {
  EXPECT_THAT(split(regex_split("x*"), "aéxxb"), ElementsAre("a", "é", "xx", "b"));
  EXPECT_THAT(split(regex_split("(?=b)"), "abb"), ElementsAre("a", "b", "b"));
}

// Hugging Face runs these through Oniguruma; what it gives was taken from there.
TEST(Regex, ReadsOnigurumasDialect) {
  EXPECT_THAT(split(regex_split("\\s+"), "a\u0085\u00a0\u3000b\u180ec"),
              ElementsAre("a", "\u0085\u00a0\u3000", "b\u180ec"));
  EXPECT_THAT(split(regex_split("[^\\s]+"), "a\u180e b"), ElementsAre("a\u180e", " ", "b"));
  EXPECT_THAT(split(regex_split("\\S"), "a \u180e"), ElementsAre("a", " ", "\u180e"));
  EXPECT_THAT(split(regex_split("b$"), "b\nab"), ElementsAre("b", "\na", "b"));
  EXPECT_THAT(split(regex_split("(?i:'s)"), "x'S'\u017f"), ElementsAre("x", "'S", "'\u017f"));
  for (const char* pattern : {"\\w", "\\W", "\\b", "\\h", "[\\S]", "[a[b]]", "[a&&b]", "[]a]"}) {
    const Expected<Regex> regex = Regex::compile(pattern);
    ASSERT_FALSE(regex.ok()) << pattern;
    EXPECT_THAT(regex.status().message(), HasSubstr("not supported")) << pattern;
  }
  EXPECT_TRUE(Regex::compile("[\\[\\]&]").ok());
}

TEST(Regex, ABadPatternIsRefusedWithItsOffset) {
  const Expected<Regex> regex = Regex::compile("a(b");
  ASSERT_FALSE(regex.ok());
  EXPECT_THAT(regex.status().message(), HasSubstr("missing closing parenthesis at offset 3"));
}

TEST(Regex, EndlessBacktrackingIsAnError) {
  const Expected<Regex> regex = Regex::compile("(a+)+$");
  ASSERT_TRUE(regex.ok());
  const Status status =
      regex->scan(std::string(60, 'a') + "b", [](std::string_view, bool /*match*/) {});
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("failed at byte 0"));
  EXPECT_THAT(status.message(), HasSubstr("limit"));
}

TEST(Regex, ErrorsOfALaterStepAreReported) {
  std::vector<PreTokenizer::Step> steps;
  steps.emplace_back(SplitStep{Pattern(*Regex::compile(" +"))});
  steps.emplace_back(SplitStep{Pattern(*Regex::compile("(a+)+$"))});
  steps.emplace_back(PrefixSpaceStep{});
  const PreTokenizer pre_tokenizer(std::move(steps));
  const Status status =
      pre_tokenizer.split("x " + std::string(60, 'a') + "b y", [](std::string_view) {});
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
}

TEST(PreTokenizer, ByteLevelAlone) {
  EXPECT_THAT(split(byte_level(false, true), "I'll  go, 12x"),
              ElementsAre("I", "'ll", " ", " go", ",", " 12", "x"));
  EXPECT_THAT(split(byte_level(false, false), "I'll  go"), ElementsAre("I'll  go"));
}

TEST(PreTokenizer, PrefixSpaceStandsBeforeEveryPieceThatHasNone) {
  EXPECT_THAT(split(byte_level(true, true), "a b"), ElementsAre(" a", " b"));
  EXPECT_THAT(split(byte_level(true, true), " a"), ElementsAre(" a"));
  EXPECT_THAT(split(byte_level(true, true), ""), ElementsAre());
  const json sequence = {
      {"type", "Sequence"},
      {"pretokenizers",
       {{{"type", "Split"},
         {"pattern", {{"Regex", "-"}}},
         {"behavior", "Isolated"},
         {"invert", false}},
        {{"type", "ByteLevel"}, {"add_prefix_space", true}, {"use_regex", false}}}}};
  EXPECT_THAT(split(pre_tokenizer_of(sequence), "a-b"), ElementsAre(" a", " -", " b"));
}

PreTokenizer splitting(const std::string& behavior, bool invert = false) {
  return pre_tokenizer_of({{"type", "Split"},
                           {"pattern", {{"String", "-"}}},
                           {"behavior", behavior},
                           {"invert", invert}});
}

TEST(PreTokenizer, AMatchGoesWhereTheBehaviorSays) {
  EXPECT_THAT(split(splitting("Isolated"), "-a--b-"), ElementsAre("-", "a", "-", "-", "b", "-"));
  EXPECT_THAT(split(splitting("Removed"), "-a--b-"), ElementsAre("a", "b"));
  EXPECT_THAT(split(splitting("Removed", true), "-a--b-"), ElementsAre("-", "-", "-", "-"));
  EXPECT_THAT(split(splitting("MergedWithPrevious"), "-a--b-"), ElementsAre("-", "a-", "-", "b-"));
  EXPECT_THAT(split(splitting("MergedWithNext"), "-a--b-"), ElementsAre("-a", "-", "-b", "-"));
  EXPECT_THAT(split(splitting("Contiguous"), "-a--b-"), ElementsAre("-", "a", "--", "b", "-"));
}

TEST(PreTokenizer, MetaspaceFirstIsWhereTheTextBegins) {
  const PreTokenizer metaspace =
      pre_tokenizer_of({{"type", "Metaspace"}, {"replacement", "▁"}, {"prepend_scheme", "first"}});
  EXPECT_THAT(split(metaspace, "a b"), ElementsAre("▁a", "▁b"));
  Words behind;
  EXPECT_TRUE(metaspace
                  .split(
                      "a b", [&](std::string_view word) { behind.emplace_back(word); }, false)
                  .ok());
  EXPECT_THAT(behind, ElementsAre("a", "▁b"));
}

}  // namespace
}  // namespace anyslot
