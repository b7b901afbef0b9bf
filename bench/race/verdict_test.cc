#include "verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test_race.h"

namespace anyslot::bench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Verdict, TellsHowMuchSoonerAndWhy) {
  EXPECT_THAT(
      verdict_of(sample_race()),
      ElementsAre("lazy began to answer 4.5 times sooner: after 20 ms, prefix after 90 ms.",
                  "lazy found every document in its cache: its copy fits any slot.",
                  "prefix reused C, as far as the prompt begins like an earlier one, and computed "
                  "the rest.",
                  "Both gave the same answer, the right one."));
}

TEST(Verdict, NamesTheQuickerLaneWhicheverItIs) {
  Race race = sample_race();
  std::swap(race.runs[0].first_token_ms, race.runs[1].first_token_ms);
  EXPECT_THAT(verdict_of(race)[0], HasSubstr("prefix began to answer 4.5 times sooner"));
  race.runs[0].first_token_ms = 21;
  EXPECT_THAT(verdict_of(race)[0], HasSubstr("About as soon as each other"));
  race.runs[0].first_token_ms.reset();
  EXPECT_THAT(verdict_of(race)[0], HasSubstr("cannot be raced"));
}

TEST(Verdict, TellsWhatWasComputed) {
  Race race = sample_race();
  race.runs[0].documents[1].cached = 0;
  for (RunDocument& document : race.runs[1].documents) document.cached = 0;
  EXPECT_EQ(verdict_of(race)[1], "lazy computed only what was new to it: A.");
  EXPECT_THAT(verdict_of(race)[2], HasSubstr("prefix had to compute every document"));
  for (RunDocument& document : race.runs[0].documents) document.cached = 0;
  EXPECT_EQ(verdict_of(race)[1], "Neither had anything cached, so both computed every document.");
  race = sample_race();
  race.runs[1].reuse = LaneReuse::kNothing;
  EXPECT_EQ(verdict_of(race)[2], "prefix computes every document every time.");
}

TEST(Verdict, TakesServersAtTheirWord) {
  Race race = sample_race();
  for (RaceRun& run : race.runs) {
    run.reuse = LaneReuse::kUnknown;
    run.documents.clear();
  }
  race.runs[1].cached_tokens.reset();
  EXPECT_EQ(verdict_of(race)[1], "lazy had 80 of the 100 tokens of the prompt in its cache.");
  EXPECT_EQ(verdict_of(race)[2], "prefix does not tell what it had in its cache.");
  EXPECT_EQ(reuse_text(race.runs[0]), "80 of 100 prompt tokens cached");
  EXPECT_EQ(reuse_text(race.runs[1]), "does not tell what was cached");
}

TEST(Verdict, HidesNoDifferenceOfAnswers) {
  Race race = sample_race();
  race.runs[1].pieces = {{90, "Masa"}};
  EXPECT_EQ(verdict_of(race).back(), "The answers differ: that of lazy is the right one.");
  race.runs[0].pieces = {{20, "Vordin"}};
  EXPECT_EQ(verdict_of(race).back(), "The answers differ, and neither is the expected one.");
  race.plan.answers.clear();
  EXPECT_EQ(verdict_of(race).back(), "The answers differ.");
  race.runs[0].pieces = {{20, " Masa\n"}};
  EXPECT_EQ(verdict_of(race).back(), "Both gave the same answer.");
  race.plan.answers = {"Chemi"};
  EXPECT_EQ(verdict_of(race).back(), "Both gave the same answer, but not the expected one.");
}

}  // namespace
}  // namespace anyslot::bench
