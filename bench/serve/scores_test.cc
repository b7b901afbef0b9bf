#include "scores.h"

#include <gtest/gtest.h>

namespace anyslot::bench {
namespace {

double own_score(const std::string& output, const std::string& answer, AnswerMetric metric,
                 const std::vector<std::string>& classes = {}) {
  return score_output(output, {answer}, metric, classes).score;
}

TEST(RougeL, IsF1OfTheLongestCommonSubsequenceOfWords) {
  // "the cat sat" of 6 and 4 words: 2 * 3 / 10.
  EXPECT_DOUBLE_EQ(rouge_l("the big cat sat over there", "the cat sat down"), 0.6);
  EXPECT_DOUBLE_EQ(rouge_l("a b", "b a"), 0.5);
  EXPECT_DOUBLE_EQ(rouge_l("", "a"), 0);
}

TEST(ScoreOutput, TakesTheBestAnswerForEachMeasure) {
  const AnswerScores scores =
      score_output("The Masa river", {"Elbe", "Masa", "masa river"}, AnswerMetric::kF1, {});
  EXPECT_DOUBLE_EQ(scores.exact_match, 1);
  EXPECT_DOUBLE_EQ(scores.contains_match, 1);
  EXPECT_DOUBLE_EQ(scores.score, 1);
}

TEST(ScoreOutput, KnowsTheMeasuresOfLongBench) {
  const std::vector<std::string> classes = {"Date", "City", "Other city", "Reason"};
  EXPECT_DOUBLE_EQ(
      own_score("\nCity or Date\nReason", "City", AnswerMetric::kClassification, classes), 0.5);
  // "City" is a part of the right class's name in lower case only, "Other city" stands alone.
  EXPECT_DOUBLE_EQ(own_score("Other city", "Other city", AnswerMetric::kClassification, classes),
                   1);
  EXPECT_DOUBLE_EQ(own_score("Reason", "City", AnswerMetric::kClassification, classes), 0);
  EXPECT_DOUBLE_EQ(own_score("Paragraph 12 or 3", "Paragraph 12", AnswerMetric::kRetrieval), 0.5);
  EXPECT_DOUBLE_EQ(own_score("7", "7", AnswerMetric::kCount), 1);
  EXPECT_DOUBLE_EQ(own_score("seven", "7", AnswerMetric::kCount), 0);
  EXPECT_DOUBLE_EQ(own_score("# a comment\nab\nx = 1", "abcd", AnswerMetric::kCodeSimilarity),
                   2 * 2.0 / 6);
}

}  // namespace
}  // namespace anyslot::bench
