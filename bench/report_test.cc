#include "report.h"

#include <gtest/gtest.h>

namespace anyslot::bench {
namespace {

Report sample_report() {
  Report report(
      "model", {{"cpu", "Zen \"4\""}, {"threads", "2"}},
      {{"test", "test", 0}, {"tokens", "", 0}, {"mean", ">tokens/s", 1}, {"samples", "", 0}});
  report.add_row({"pp64, cold", 64, 12.345, {12.0, 12.69}});
  report.add_row({"say \"hi\"", 7, nullptr, nlohmann::ordered_json::array()});
  return report;
}

TEST(Report, TableShowsColumnsWithHeadings) {
  EXPECT_EQ(sample_report().table_text(),
            "test        tokens/s\n"
            "----------  --------\n"
            "pp64, cold      12.3\n"
            "say \"hi\"           -\n");
  EXPECT_EQ(sample_report().facts_text(), "cpu: Zen \"4\"\nthreads: 2\n");
}

TEST(Report, JsonHoldsEverything) {
  const auto json = nlohmann::json::parse(sample_report().json_text());
  EXPECT_EQ(json.at("benchmark"), "model");
  EXPECT_EQ(json.at("facts").at("cpu"), "Zen \"4\"");
  ASSERT_EQ(json.at("results").size(), 2);
  EXPECT_EQ(json.at("results").at(0).at("mean"), 12.345);
  EXPECT_EQ(json.at("results").at(0).at("samples"), nlohmann::json({12.0, 12.69}));
  EXPECT_TRUE(json.at("results").at(1).at("mean").is_null());
}

TEST(Report, CsvQuotesAndLeavesListsOut) {
  EXPECT_EQ(sample_report().csv_text(),
            "test,tokens,mean\n"
            "\"pp64, cold\",64,12.345\n"
            "\"say \"\"hi\"\"\",7,\n");
}

}  // namespace
}  // namespace anyslot::bench
