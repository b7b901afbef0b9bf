#include "timing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace anyslot::bench {
namespace {

using testing::ElementsAre;

TEST(TimeRuns, LeavesTheFirstOutAndMeetsBothLimits) {
  const auto by_index = [](int i) -> Expected<double> { return i + 0.5; };
  EXPECT_THAT(time_runs({.runs = 3, .seconds = 0}, by_index).value(), ElementsAre(1.5, 2.5, 3.5));
  EXPECT_THAT(time_runs({.runs = 1, .seconds = 8}, by_index).value(),
              ElementsAre(1.5, 2.5, 3.5, 4.5))
      << "7.5 seconds after three are not enough";
}

TEST(TimeRuns, EndsWithTheFirstFailure) {
  int calls = 0;
  const auto times = time_runs({.runs = 5, .seconds = 0}, [&](int i) -> Expected<double> {
    ++calls;
    if (i == 2) return internal_error("broken");
    return 1.0;
  });
  EXPECT_EQ(times.status().message(), "broken");
  EXPECT_EQ(calls, 3);
}

}  // namespace
}  // namespace anyslot::bench
