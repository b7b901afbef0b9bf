// `anyslot bench sweep` as it is called.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "bench/test_words.h"
#include "cli/test_program.h"
#include "support/temporary_folder.h"

namespace anyslot::bench {
namespace {

using nlohmann::json;
using testing::HasSubstr;

std::string read(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::vector<std::string> small_sweep(const std::string& figures, const std::string& page) {
  std::vector<std::string> arguments =
      small_bench("sweep",
                  "--num-documents 8 --documents-per-prompt 3 --document-len 40 --output-len 4 "
                  "--num-prompts 6 --run-seconds 0.3 --figures " +
                      figures);
  arguments.insert(arguments.end(), {"--report", page});
  return arguments;
}

TEST(BenchSweep, WritesAPageAndItsNumbers) {
  const testing_support::TemporaryFolder folder;
  std::vector<std::string> arguments =
      small_sweep("rate-skewed,concurrency,decode", folder.file("a.html"));
  arguments.insert(arguments.end(), {"--json", folder.file("a.json")});
  const cli::ProgramResult result = cli::run_program(arguments);
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.out, HasSubstr("answers first"));

  const json report = json::parse(read(folder.file("a.json")));
  EXPECT_THAT(report.at("command"), HasSubstr("bench sweep --model"));
  ASSERT_EQ(report.at("figures").size(), 3U);
  std::map<std::string, std::set<std::string>> methods;  // of each figure
  std::map<std::string, double> cached;                  // of each method, at all rates
  for (const json& figure : report.at("figures")) {
    for (const json& row : figure.at("rows")) {
      methods[figure.at("id")].insert(row.at("series"));
      EXPECT_EQ(row.at("failed"), 0);
      EXPECT_GT(row.at("mean_ttft_ms"), 0);
      if (figure.at("id") == "rate-skewed")
        cached[row.at("series")] += row.at("cached_tokens").get<double>();
    }
  }
  EXPECT_EQ(methods.at("rate-skewed").size(), 5U);
  EXPECT_EQ(methods.at("decode").size(), 5U);
  EXPECT_GT(cached.at("lazy"), cached.at("prefix"));
  EXPECT_EQ(cached.at("full"), 0);

  const std::string page = read(folder.file("a.html"));
  EXPECT_THAT(page, HasSubstr("</html>"));
  EXPECT_THAT(page, HasSubstr("data-value=\"" +
                              report["figures"][0]["rows"][0]["mean_ttft_ms"].dump() + "\""));
}

TEST(BenchSweep, RefusesAnUnknownFigure) {
  const testing_support::TemporaryFolder folder;
  const cli::ProgramResult result = cli::run_program(small_sweep("speed", folder.file("a.html")));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.last_error_line(), HasSubstr("\"speed\" is no figure"));
  EXPECT_FALSE(std::ifstream(folder.file("a.html")).is_open());
}

}  // namespace
}  // namespace anyslot::bench
