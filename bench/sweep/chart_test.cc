#include "chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace anyslot::bench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(RoundTicks, AreRoundAndInside) {
  EXPECT_THAT(round_ticks(0, 10, 5), ElementsAre(0, 2, 4, 6, 8, 10));
  EXPECT_THAT(round_ticks(0, 1260, 5), ElementsAre(0, 250, 500, 750, 1000, 1250));
  EXPECT_THAT(round_ticks(3, 3, 5), ElementsAre(3));
  EXPECT_THAT(round_log_ticks(8, 120), ElementsAre(10, 20, 50, 100));
  EXPECT_THAT(round_log_ticks(1, 100'000), ElementsAre(1, 10, 100, 1000, 10'000, 100'000));
  EXPECT_THAT(round_log_ticks(3, 4), ElementsAre(3, 4));  // no round number between them
}

TEST(ShortNumber, KeepsWhatPeopleRead) {
  EXPECT_EQ(short_number(0), "0");
  EXPECT_EQ(short_number(0.25), "0.25");
  EXPECT_EQ(short_number(9.999), "10");
  EXPECT_EQ(short_number(12.54), "12.5");
  EXPECT_EQ(short_number(999.4), "999");
  EXPECT_EQ(short_number(1500), "1,500");
  EXPECT_EQ(short_number(-1500), "-1,500");
  EXPECT_EQ(short_number(999'499), "999,499");
  EXPECT_EQ(short_number(2'500'000), "2.5M");
}

TEST(Chart, HasALineAndANamePerSeries) {
  const Chart chart{.title = "t",
                    .x_label = "x",
                    .y_label = "y",
                    .series = {{"lazy", 0, {{1, 10}, {2, 20}}}, {"full", 4, {{1, 30}, {2, 60}}}}};
  const std::string svg = chart_svg(chart);
  EXPECT_EQ(count(svg, "class=\"line\""), 2U);
  EXPECT_EQ(count(svg, "<title>"), 4U);
  EXPECT_THAT(svg, HasSubstr("<title>full: 60 at 2</title>"));
  EXPECT_THAT(svg, HasSubstr(">lazy</text>"));
}

TEST(Chart, LeavesOutWhatAnAxisCannotShow) {
  const Chart chart{.title = "t",
                    .x_label = "x",
                    .y_label = "y",
                    .log_x = true,
                    .log_y = true,
                    .series = {{"a", 0, {{0, 1}, {1, 0}, {1, std::nan("")}, {1, 5}, {2, 6}}}}};
  const std::string svg = chart_svg(chart);
  EXPECT_EQ(count(svg, "<title>"), 2U);
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
}

TEST(Chart, OfNothingSaysSo) {
  EXPECT_THAT(chart_svg({}), HasSubstr("nothing was measured"));
  const Chart one{.title = "t", .x_label = "x", .y_label = "y", .series = {{"a", 0, {{3, 0}}}}};
  EXPECT_THAT(chart_svg(one), Not(HasSubstr("nan")));
}

TEST(Chart, NamesAreText) {
  const Chart chart{
      .title = "<b>", .x_label = "\"", .y_label = "&", .series = {{"<i>", 0, {{1, 1}}}}};
  const std::string svg = chart_svg(chart);
  EXPECT_THAT(svg, Not(HasSubstr("<i>")));
  EXPECT_THAT(svg, Not(HasSubstr("<b>")));
  EXPECT_THAT(svg, HasSubstr("&lt;i&gt;"));
}

}  // namespace
}  // namespace anyslot::bench
