#include "statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace anyslot::cli {
namespace {

// The right values are those of numpy.percentile.
TEST(Statistics, InterpolatesBetweenNeighbours) {
  const std::vector<double> values = {35, 20, 15, 50, 40};
  EXPECT_DOUBLE_EQ(median(values), 35);
  EXPECT_DOUBLE_EQ(percentile(values, 95), 48);
  EXPECT_DOUBLE_EQ(percentile(values, 0), 15);
  EXPECT_DOUBLE_EQ(percentile(values, 100), 50);
  EXPECT_DOUBLE_EQ(median(std::vector<double>{1, 2, 3, 4}), 2.5);
}

TEST(Statistics, MeanAndDeviationOfASample) {
  const std::vector<double> values = {2, 4, 4, 4, 5, 5, 7, 9};
  EXPECT_DOUBLE_EQ(mean(values), 5);
  EXPECT_DOUBLE_EQ(standard_deviation(values), std::sqrt(32.0 / 7));
}

TEST(Statistics, TakesOneValueAndNone) {
  EXPECT_DOUBLE_EQ(percentile(std::vector<double>{7}, 95), 7);
  EXPECT_DOUBLE_EQ(median({}), 0);
  EXPECT_DOUBLE_EQ(mean({}), 0);
  EXPECT_DOUBLE_EQ(standard_deviation(std::vector<double>{7}), 0);
}

}  // namespace
}  // namespace anyslot::cli
