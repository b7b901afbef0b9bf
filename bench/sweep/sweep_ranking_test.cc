// The promise of the project, measured: where documents come in new orders and some far more often
// than others, and memory is short, lazy answers sooner and generates more than methods that
// compute documents again or hold copies of them, and keeps up with mepic, because it takes as much
// from the cache, holds least KV and reads least of it.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/test_words.h"
#include "cli/test_program.h"
#include "support/temporary_folder.h"

namespace anyslot::bench {
namespace {

using nlohmann::json;

constexpr int kAttempts = 3;  // what else runs on the machine blurs times, never counts

/// What lazy must be ahead of a method by, in time to the first token and in tokens per second.
struct Lead {
  const char* method;
  double factor;
};

constexpr Lead kLeads[] = {
    {"full", 1.5},    // computes every document again
    {"prefix", 1.5},  // most of them
    {"block", 1.0},   // few, but a copy for each place fills the pool sooner
    {"mepic", 0.7},   // as few as lazy: a tie, which what else runs on the machine decides
};

/// The row of each method in the ranking of a sweep.
std::map<std::string, json> ranking_of_a_small_sweep() {
  const testing_support::TemporaryFolder folder;
  std::vector<std::string> arguments =
      small_bench("sweep",
                  "--figures rate-skewed --zipf 2.1 --num-documents 40 --documents-per-prompt 4 "
                  "--document-len 128 --output-len 32 --num-prompts 16 --run-seconds 1");
  arguments.insert(arguments.end(),
                   {"--report", folder.file("a.html"), "--json", folder.file("a.json")});
  const cli::ProgramResult result = cli::run_program(arguments);
  EXPECT_EQ(result.exit_code, 0) << result.error;
  std::ifstream file(folder.file("a.json"));
  const json report = json::parse(file, nullptr, false);
  std::map<std::string, json> rows;
  if (!report.is_object()) return rows;
  std::printf("%s\n", report.at("summary").get<std::string>().c_str());
  for (const json& row : report.at("ranking").at("rows")) rows[row.at("series")] = row;
  return rows;
}

double at(const json& row, const char* field) { return row.at(field).get<double>(); }

/// What the numbers of tokens and blocks say, which no other load on the machine changes much.
void expect_the_reason(const std::map<std::string, json>& rows) {
  const json& lazy = rows.at("lazy");
  EXPECT_GT(at(lazy, "cached_tokens"), 2 * at(rows.at("prefix"), "cached_tokens"));
  EXPECT_EQ(at(rows.at("full"), "cached_tokens"), 0);
  EXPECT_EQ(at(lazy, "blocks_copied"), 0);
  EXPECT_GT(at(rows.at("block"), "blocks_copied"), 0);
  for (const auto& [name, row] : rows) {
    if (name == "lazy") continue;
    EXPECT_LT(1.2 * at(lazy, "kv_tokens_read"), at(row, "kv_tokens_read")) << name;
  }
}

/// What keeps lazy from leading, a line for each; empty where it leads.
std::string lost(const std::map<std::string, json>& rows) {
  const json& lazy = rows.at("lazy");
  std::string lost;
  for (const auto& [method, factor] : kLeads) {
    const json& row = rows.at(method);
    const double sooner = at(row, "mean_ttft_ms") / at(lazy, "mean_ttft_ms");
    const double more = at(lazy, "output_throughput") / at(row, "output_throughput");
    if (sooner < factor || more < factor)
      lost += fmt::format("{}: first token {:.2f} times sooner, {:.2f} times the tokens, not {}\n",
                          method, sooner, more, factor);
  }
  return lost;
}

TEST(SweepRanking, LazyLeadsAndTheReasonIsShown) {
  for (int attempt = 1;; ++attempt) {
    const std::map<std::string, json> rows = ranking_of_a_small_sweep();
    ASSERT_EQ(rows.size(), 5U);
    expect_the_reason(rows);
    const std::string lost_to = lost(rows);
    if (lost_to.empty()) return;
    ASSERT_LT(attempt, kAttempts) << lost_to << json(rows).dump(1);
  }
}

}  // namespace
}  // namespace anyslot::bench
