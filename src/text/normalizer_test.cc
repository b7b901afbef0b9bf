#include "text/normalizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace anyslot {
namespace {

template <typename... Steps>
Normalizer made_of(Steps... steps) {
  std::vector<Normalizer::Step> list;
  (list.emplace_back(std::move(steps)), ...);
  return Normalizer(std::move(list));
}

/// The text with what is markup in parentheses.
std::string shown(const Normalizer& normalizer, const std::string& text,
                  const std::vector<ByteRange>& markup) {
  const Expected<MarkedText> result = normalizer.run(text, markup);
  if (!result) return result.status().message();
  std::string out = result->text;
  for (auto range = result->markup.rbegin(); range != result->markup.rend(); ++range) {
    out.insert(range->end, ")").insert(range->begin, "(");
  }
  return out;
}

TEST(Normalizer, MarkupStaysWithWhatItBecomes) {
  const Normalizer metaspace =
      made_of(PrependStep{"▁"}, ReplaceStep{Pattern(std::string(" ")), "▁"});
  EXPECT_EQ(shown(metaspace, "<s> a b", {{0, 3}}), "(▁<s>)▁a▁b");
  EXPECT_EQ(shown(metaspace, "a <s>b", {{1, 5}}), "▁a(▁<s>)b");
  EXPECT_EQ(shown(metaspace, "ab", {{0, 1}, {1, 2}}), "(▁a)(b)");
  EXPECT_EQ(shown(metaspace, "", {}), "");
  EXPECT_EQ(shown(made_of(TrimStep{}), " \u3000a b\n", {{0, 6}}), "(a )b");
}

TEST(Normalizer, WhatIsMadeOfMarkupAndContentIsContent) {
  const Normalizer composed = made_of(UnicodeFormStep{UnicodeForm::kNfc});
  EXPECT_EQ(shown(composed, "xe\u0301y", {{0, 5}}), "(x\u00e9y)");
  EXPECT_EQ(shown(composed, "xe\u0301y", {{0, 2}}), "(x)\u00e9y");
  EXPECT_EQ(shown(made_of(ReplaceStep{Pattern(std::string("ab")), "c"}), "abab", {{0, 3}}), "(c)c");
}

TEST(Normalizer, AFormTakesNoQuadraticTime) {
  // Marks of two classes in turn: ordering them by exchanging neighbours would take 10^11 steps.
  std::string marks = "a";
  for (int i = 0; i < 300'000; ++i) marks += i % 2 == 0 ? "\u0301" : "\u0323";
  const Expected<MarkedText> result = made_of(UnicodeFormStep{UnicodeForm::kNfd}).run(marks);
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result->text.starts_with("a\u0323\u0323"));
  EXPECT_TRUE(result->text.ends_with("\u0301\u0301"));
}

}  // namespace
}  // namespace anyslot
