#include "answer_metrics.h"

#include <gtest/gtest.h>

namespace anyslot::cli {
namespace {

// The right values are those of the SQuAD evaluation script.
TEST(AnswerMetrics, NormalizesAsSquadDoes) {
  const std::pair<const char*, const char*> cases[] = {
      {"The  Cat!", "cat"},
      {"an apple, a day", "apple day"},
      {"U.S.A.", "usa"},
      {"the", ""},
      {"theory of anthems", "theory of anthems"},
      {"A-Team", "ateam"},
      {"  Les Films\tDu\nLosange ", "les films du losange"},
      {"Éric ROHMER", "éric rohmer"},
      {"the–end", "–end"},
      {"1,234", "1234"},
      {"", ""}};
  for (const auto& [text, normalized] : cases)
    EXPECT_EQ(normalize_answer(text), normalized) << text;
}

TEST(AnswerMetrics, KeepsInvalidBytes) { EXPECT_EQ(normalize_answer("The \xff Cat"), "\xff cat"); }

TEST(AnswerMetrics, TakesTheBestAnswer) {
  const AnswerScore score = score_answer("The Cahiers du Cinéma.", {"Rohmer", "cahiers du cinéma"});
  EXPECT_TRUE(score.exact_match);
  EXPECT_TRUE(score.contains_match);
  EXPECT_DOUBLE_EQ(score.f1, 1);
}

TEST(AnswerMetrics, FindsTheAnswerInsideTheOutput) {
  const AnswerScore score = score_answer("It was Verin Bowick, the mayor.", {"Verin Bowick"});
  EXPECT_FALSE(score.exact_match);
  EXPECT_TRUE(score.contains_match);
  EXPECT_DOUBLE_EQ(score.f1, 2 * (2.0 / 5) * 1 / (2.0 / 5 + 1));  // precision 2/5, recall 1
}

TEST(AnswerMetrics, CountsRepeatedWordsOnce) {
  const AnswerScore score = score_answer("yes yes yes", {"yes no"});
  EXPECT_DOUBLE_EQ(score.f1, 2 * (1.0 / 3) * (1.0 / 2) / (1.0 / 3 + 1.0 / 2));
  EXPECT_FALSE(score.contains_match);
}

TEST(AnswerMetrics, ScoresNothingForNothing) {
  EXPECT_FALSE(score_answer("text", {}).contains_match);
  const AnswerScore empty_output = score_answer("", {"Masa"});
  EXPECT_FALSE(empty_output.exact_match);
  EXPECT_FALSE(empty_output.contains_match);
  EXPECT_DOUBLE_EQ(empty_output.f1, 0);
  EXPECT_FALSE(score_answer("Masa", {"the"}).contains_match) << "an empty answer stands nowhere";
}

}  // namespace
}  // namespace anyslot::cli
