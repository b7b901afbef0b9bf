// `anyslot bench` on tiny sizes: that it runs, what it writes, what it refuses. Not how fast it is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "cli/test_folder.h"
#include "cli/test_program.h"

namespace anyslot::bench {
namespace {

using cli::ProgramResult;
using cli::run_program;
using nlohmann::json;
using testing::HasSubstr;

constexpr char kTinyShape[] = R"({
  "architectures": ["LlamaForCausalLM"], "vocab_size": 200, "hidden_size": 64,
  "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
  "num_key_value_heads": 2, "head_dim": 16, "rms_norm_eps": 1e-5,
  "max_position_embeddings": 4096, "tie_word_embeddings": true, "eos_token_id": 3
})";

class Bench : public testing::Test {
 protected:
  /// Runs a benchmark, which must succeed, and reads what it wrote.
  void run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "bench");
    for (const std::string& argument :
         {std::string("--json"), folder_ / "out.json", std::string("--csv"), folder_ / "out.csv"}) {
      arguments.push_back(argument);
    }
    result_ = run_program(arguments);
    ASSERT_EQ(result_.exit_code, 0) << result_.error;
    report_ = json::parse(cli::file_text(folder_ / "out.json"));
    std::istringstream lines(cli::file_text(folder_ / "out.csv"));
    csv_.clear();
    for (std::string line; std::getline(lines, line);) csv_.push_back(line);
  }

  cli::TestFolder folder_;
  std::string shape_ = folder_.write("tiny-shape.json", kTinyShape);
  ProgramResult result_;
  json report_;
  std::vector<std::string> csv_;
};

TEST_F(Bench, ModelMeasuresEveryTestAndWritesThreeForms) {
  run({"model", "--random-weights", shape_, "--prompt-tokens", "8,24", "--depth", "0,40",
       "--document-tokens", "16", "--generate", "3", "--method", "lazy,full", "--repetitions", "2",
       "--threads", "1"});
  EXPECT_EQ(report_.at("benchmark"), "model");
  EXPECT_THAT(report_.at("facts").at("model").get<std::string>(), HasSubstr("tiny-shape"));
  EXPECT_THAT(report_.at("facts").at("model").get<std::string>(), HasSubstr("random weights"));
  EXPECT_THAT(report_.at("facts").at("backend").get<std::string>(), HasSubstr("1 thread"));
  std::vector<std::string> tests;
  for (const json& row : report_.at("results")) {
    tests.push_back(row.at("method").get<std::string>() + " " + row.at("test").get<std::string>());
    ASSERT_EQ(row.at("samples").size(), 2);
    const double mean =
        (row.at("samples").at(0).get<double>() + row.at("samples").at(1).get<double>()) / 2;
    EXPECT_NEAR(row.at("tokens_per_second").get<double>(), mean, mean * 1e-9);
    EXPECT_GT(mean, 0);
    EXPECT_THAT(result_.out, HasSubstr(row.at("test").get<std::string>()));
  }
  EXPECT_THAT(tests, testing::ElementsAre("lazy pp8", "lazy pp24", "lazy tg3", "lazy pp8 @ d40",
                                          "lazy pp24 @ d40", "lazy tg3 @ d40", "full pp8",
                                          "full pp24", "full tg3", "full tg3 @ d40"));
  ASSERT_EQ(csv_.size(), 11);
  EXPECT_EQ(
      csv_[0],
      "test,method,prompt_tokens,generated_tokens,depth,tokens_per_second,standard_deviation");
  EXPECT_THAT(csv_[1], testing::StartsWith("pp8,lazy,8,0,0,"));
}

TEST_F(Bench, ModelRunsEveryMethodOnTheBundledModel) {
  run({"model", "--model", ANYSLOT_MODEL_DIR, "--prompt-tokens", "16", "--depth", "64",
       "--generate", "2", "--method", "lazy,block,mepic,prefix", "--repetitions", "1"});
  EXPECT_EQ(report_.at("results").size(), 8);
}

TEST_F(Bench, ModelTellsWhenTheDepthDoesNotStayCached) {
  const ProgramResult result =
      run_program({"bench", "model", "--random-weights", shape_, "--prompt-tokens", "64", "--depth",
                   "64,128", "--generate", "0", "--method", "prefix", "--kv-cache", "57344"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.last_error_line(), HasSubstr("--kv-cache"));
}

TEST_F(Bench, WrongCallsAreRefused) {
  const auto refused = [&](const std::vector<std::string>& arguments, const std::string& message) {
    const ProgramResult result = run_program(arguments);
    EXPECT_EQ(result.exit_code, 2) << message;
    EXPECT_THAT(result.last_error_line(), HasSubstr(message));
  };
  refused({"bench"}, "subcommand is required");
  refused({"bench", "model"}, "--model is required");
  refused({"bench", "model", "--model", ANYSLOT_MODEL_DIR, "--random-weights", shape_}, "excludes");
  refused({"bench", "model", "--random-weights", folder_ / "none"}, "there is no file");
  refused({"bench", "model", "--random-weights", shape_, "--prompt-tokens", "0"}, "\"0\"");
  refused({"bench", "model", "--random-weights", shape_, "--method", "fast"}, "fast");
  refused({"bench", "model", "--random-weights", shape_, "--json", "/nowhere/x"}, "/nowhere/x");
}

}  // namespace
}  // namespace anyslot::bench
