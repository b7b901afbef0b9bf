// `anyslot bench serve` as it is called.

#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "bench/test_words.h"
#include "cli/test_program.h"
#include "support/temporary_folder.h"
#include "test_fake_server.h"
#include "test_other_servers.h"

namespace anyslot::bench {
namespace {

using nlohmann::json;

std::string read(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::vector<std::string> small_run(const std::string& json_path) {
  std::vector<std::string> arguments =
      small_bench("serve",
                  "--num-prompts 6 --documents-per-prompt 3 --num-documents 8 --document-len 40 "
                  "--output-len 4");
  arguments.insert(arguments.end(), {"--json", json_path});
  return arguments;
}

TEST(BenchServe, ReportsEachMethodWithMachineAndCommand) {
  const testing_support::TemporaryFolder folder;
  std::vector<std::string> arguments = small_run(folder.file("out.json"));
  arguments.insert(arguments.end(), {"--method", "lazy,full", "--csv", folder.file("out.csv"),
                                     "--goodput", "ttft:10000", "tpot:10000"});
  const cli::ProgramResult result = cli::run_program(arguments);
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const json report = json::parse(read(folder.file("out.json")));
  EXPECT_NE(report["facts"]["command"].get<std::string>().find("bench serve --model"),
            std::string::npos);
  EXPECT_TRUE(report["facts"].contains("cpu"));
  ASSERT_EQ(report["results"].size(), 2U);
  const json& lazy = report["results"][0];
  EXPECT_EQ(lazy["method"], "lazy");
  EXPECT_EQ(lazy["completed"], 6);
  EXPECT_EQ(lazy["num_prompts"], 6);
  EXPECT_EQ(lazy["request_rate"], "inf");
  EXPECT_EQ(lazy["total_output_tokens"], 24);
  EXPECT_EQ(lazy["request_goodput"], lazy["request_throughput"]);
  EXPECT_GT(lazy["mean_ttft_ms"], 0);
  EXPECT_GT(lazy["peak_kv_bytes"], 0);
  EXPECT_EQ(report["results"][1]["hit_ratio"], 0);
  EXPECT_EQ(std::ranges::count(read(folder.file("out.csv")), '\n'), 3);
}

TEST(BenchServe, FailsWhenARequestFailsButReports) {
  const testing_support::TemporaryFolder folder;
  const FakeServer server;
  const std::string rows = folder.write("rows.jsonl",
                                        "{\"documents\": [\"d\"], \"question\": \"good\"}\n"
                                        "{\"documents\": [\"d\"], \"question\": \"do-close\"}\n");
  const cli::ProgramResult result =
      cli::run_program({"bench", "serve", "--base-url", server.url(), "--model", "fake",
                        "--dataset-name", "ragqa", "--dataset-path", rows, "--api-key", "secret",
                        "--json", folder.file("out.json"), "--save-detailed"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.last_error_line().find("1 of 2 requests failed: 1 closed"), std::string::npos)
      << result.error;
  const std::string text = read(folder.file("out.json"));
  EXPECT_EQ(text.find("secret"), std::string::npos);
  const json row = json::parse(text)["results"][0];
  EXPECT_EQ(row["completed"], 1);
  EXPECT_EQ(row["failed_closed"], 1);
  EXPECT_EQ(row["generated_texts"][0], "one two three");
}

TEST(BenchServe, DrivesOtherServersByTheirUrlAlone) {
  const testing_support::TemporaryFolder folder;
  std::unique_ptr<OtherServer> peers[] = {other_server_vllm(),
                                          other_server_llama_cpp(LlamaCppBuild::k2026)};
  for (const auto& peer : peers) {
    const FakeServer server([&](const FakeRequest& request) { return peer->answer(request); });
    std::vector<std::string> arguments = words_of(
        "bench serve --documents-as prompt --num-prompts 6 --documents-per-prompt 3 "
        "--num-documents 8 --document-len 40 --output-len 4 --document-order fixed --zipf 2");
    arguments.insert(arguments.end(),
                     {"--base-url", server.url() + "/v1", "--json", folder.file("out.json")});
    const cli::ProgramResult result = cli::run_program(arguments);
    ASSERT_EQ(result.exit_code, 0) << result.error;
    const json row = json::parse(read(folder.file("out.json")))["results"][0];
    EXPECT_EQ(row["completed"], 6);
    EXPECT_EQ(row["total_output_tokens"], 24);
    EXPECT_EQ(row["total_input_tokens"], peer->counts().prompt_tokens);
    EXPECT_EQ(row["cached_tokens"], peer->counts().cached_tokens);
    EXPECT_GT(row["hit_ratio"], 0);
  }
}

TEST(BenchServe, ReportsAfterAnInterrupt) {
  const testing_support::TemporaryFolder folder;
  const FakeServer server;
  const std::string rows =
      folder.write("rows.jsonl", "{\"documents\": [\"d\"], \"question\": \"do-stall\"}\n");
  cli::ProgramInput input;  // the facts come when the target is open
  input.on_output = [&server](pid_t pid) {
    while (server.bodies().empty()) std::this_thread::yield();
    ::kill(pid, SIGINT);
  };
  const cli::ProgramResult result = cli::run_program(
      {"bench", "serve", "--base-url", server.url(), "--model", "fake", "--dataset-name", "ragqa",
       "--dataset-path", rows, "--json", folder.file("out.json")},
      input);
  EXPECT_EQ(result.exit_code, 1) << result.error;
  const json row = json::parse(read(folder.file("out.json")))["results"][0];
  EXPECT_EQ(row["cancelled"], 1);
  EXPECT_EQ(row["stopped"], true);
}

TEST(BenchServe, TellsWhatIsWrongWithACall) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> calls = {
      {{}, "--base-url"},
      {{"--model", "/nowhere"}, "--model: there is no folder or GGUF file \"/nowhere\""},
      {{"--base-url", "ftp://x", "--model", "m"}, "http://host:port"},
      {{"--model", ANYSLOT_MODEL_DIR, "--dataset-name", "longbench"}, "--dataset-path"},
      {{"--model", ANYSLOT_MODEL_DIR, "--goodput", "ttfb:1"}, "ttft:200"},
      {{"--model", ANYSLOT_MODEL_DIR, "--request-rate", "0"}, "inf"}};
  for (const auto& [extra, expected] : calls) {
    std::vector<std::string> arguments = {"bench", "serve"};
    arguments.insert(arguments.end(), extra.begin(), extra.end());
    const cli::ProgramResult result = cli::run_program(arguments);
    EXPECT_EQ(result.exit_code, 2) << result.error;
    EXPECT_NE(result.last_error_line().find(expected), std::string::npos) << result.error;
  }
}

}  // namespace
}  // namespace anyslot::bench
