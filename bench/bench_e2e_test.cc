// `anyslot bench` on tiny sizes: that it runs, what it writes, what it refuses. Not how fast it is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "cli/test_program.h"
#include "support/temporary_folder.h"

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
    for (const std::string& argument : {std::string("--json"), folder_.file("out.json"),
                                        std::string("--csv"), folder_.file("out.csv")}) {
      arguments.push_back(argument);
    }
    result_ = run_program(arguments);
    ASSERT_EQ(result_.exit_code, 0) << result_.error;
    report_ = json::parse(testing_support::read_bytes(folder_.file("out.json")));
    std::istringstream lines(testing_support::read_bytes(folder_.file("out.csv")));
    csv_.clear();
    for (std::string line; std::getline(lines, line);) csv_.push_back(line);
  }

  testing_support::TemporaryFolder folder_;
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
  EXPECT_EQ(csv_[0],
            "test,method,prompt_tokens,generated_tokens,depth,batch,milliseconds,"
            "tokens_per_second,standard_deviation,"
            "peer_tokens_per_second,over_peer");
  EXPECT_THAT(csv_[1], testing::StartsWith("pp8,lazy,8,0,0,1,"));
}

TEST_F(Bench, ModelRunsEveryMethodOnTheBundledModel) {
  run({"model", "--model", ANYSLOT_MODEL_DIR, "--prompt-tokens", "16", "--depth", "64",
       "--generate", "2", "--method", "lazy,block,mepic,prefix", "--repetitions", "1"});
  EXPECT_EQ(report_.at("results").size(), 8);
}

TEST_F(Bench, ModelDecodesRequestsTogether) {
  run({"model", "--random-weights", shape_, "--prompt-tokens", "8", "--depth", "32", "--generate",
       "16", "--batch", "1,8", "--repetitions", "3", "--threads", "1"});
  const json& results = report_.at("results");
  ASSERT_EQ(results.size(), 3);
  EXPECT_EQ(results[2].at("test"), "tg16 x 8 @ d32");
  EXPECT_EQ(results[2].at("batch"), 8);
  const auto ms = [&](int row) { return results[row].at("milliseconds").get<double>(); };
  EXPECT_LT(ms(2), 8 * ms(1));  // a step of eight costs less than eight steps
  EXPECT_NEAR(results[2].at("tokens_per_second").get<double>(), 16 * 8 / ms(2) * 1e3, 1e-3);
}

TEST_F(Bench, ModelGivesTextInANewOrder) {
  run({"model", "--random-weights", shape_, "--prompt-tokens", "8", "--depth", "0,192",
       "--document-tokens", "16", "--generate", "0", "--method", "lazy,prefix,full", "--reorder",
       "--repetitions", "3", "--threads", "1"});
  std::map<std::string, double> ms;
  for (const json& row : report_.at("results")) {
    ms[row.at("method").get<std::string>() + " " + row.at("test").get<std::string>()] =
        row.at("milliseconds").get<double>();
  }
  EXPECT_EQ(ms.size(), 6);
  // 200 tokens are computed instead of 8.
  EXPECT_GT(ms.at("full pp8 @ d192 reordered"), 1.5 * ms.at("lazy pp8 @ d192"));
  EXPECT_GT(ms.at("prefix pp8 @ d192 reordered"), 1.5 * ms.at("lazy pp8 @ d192"));
}

TEST_F(Bench, ModelComparesWithAPeer) {
  // Answers each test with its prompt's length times 10, or 7 times the answer's.
  const std::string peer = R"sh(while read -r test; do
    p=${test#*prompt_tokens??}; p=${p%%[!0-9]*}
    g=${test#*generated_tokens??}; g=${g%%[!0-9]*}
    printf '{"tokens_per_second": %d}\n' $((p * 10 + g * 7))
  done)sh";
  run({"model", "--random-weights", shape_, "--prompt-tokens", "8", "--depth", "0", "--generate",
       "3", "--repetitions", "2", "--peer", peer});
  const json& results = report_.at("results");
  ASSERT_EQ(results.size(), 2);
  EXPECT_EQ(results[0].at("peer_samples"), json({80.0, 80.0}));
  EXPECT_EQ(results[1].at("peer_samples"), json({21.0, 21.0}));
  const json& samples = results[0].at("samples");
  EXPECT_NEAR(results[0].at("over_peer").get<double>(),
              (samples[0].get<double>() + samples[1].get<double>()) / 2 / 80, 1e-9);
  EXPECT_THAT(result_.out, HasSubstr("peer's"));
}

TEST_F(Bench, ModelTellsWhatIsWrongWithAPeer) {
  const auto error_with = [&](const std::string& peer) {
    const ProgramResult result =
        run_program({"bench", "model", "--random-weights", shape_, "--prompt-tokens", "8",
                     "--generate", "0", "--depth", "0", "--peer", peer});
    EXPECT_EQ(result.exit_code, 1);
    return result.last_error_line();
  };
  EXPECT_THAT(error_with("exit 3"), HasSubstr("peer"));
  EXPECT_THAT(error_with("read x; echo '{\"error\": \"too long\"}'"), HasSubstr("pp8: too long"));
  EXPECT_THAT(error_with("read x; echo fast"), HasSubstr("no rate in its answer, \"fast\""));
}

TEST_F(Bench, ModelTellsWhenTheDepthDoesNotStayCached) {
  // 14 blocks: the depth of one method drives out the other's.
  const ProgramResult result =
      run_program({"bench", "model", "--random-weights", shape_, "--prompt-tokens", "64", "--depth",
                   "128", "--generate", "0", "--method", "prefix,lazy", "--kv-cache", "57344"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.last_error_line(), HasSubstr("--kv-cache"));
}

TEST_F(Bench, ModelTellsWhenABatchDoesNotRunAtOnce) {
  const ProgramResult result = run_program(
      {"bench", "model", "--random-weights", shape_, "--prompt-tokens", "8", "--depth", "128",
       "--generate", "4", "--batch", "4", "--kv-cache", "57344"});  // one at a time
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.last_error_line(), HasSubstr("tg4 x 4 @ d128: the requests did not decode"));
}

std::vector<std::string> tiny_attention(const std::string& shape) {
  return {"attention", "--shape",   shape, "--query-tokens",
          "1,5",       "--context", "50",  "--batch",
          "1,3",       "--runs",    "1",   "--seconds",
          "0",         "--threads", "2",   "--document-tokens",
          "20"};
}

TEST_F(Bench, AttentionReadsHalfAsMuchOfFp8) {
  std::vector<std::string> arguments = tiny_attention(shape_);
  run(arguments);
  const double whole = report_.at("results")[0].at("kv_megabytes_read").get<double>();
  arguments.insert(arguments.end(), {"--kv-cache-dtype", "fp8"});
  run(arguments);
  EXPECT_DOUBLE_EQ(2 * report_.at("results")[0].at("kv_megabytes_read").get<double>(), whole);
  EXPECT_THAT(report_.at("facts").at("shape").get<std::string>(), HasSubstr("KV fp8_e4m3"));
}

TEST_F(Bench, AttentionMeasuresEveryCaseAndChecksIt) {
  std::vector<std::string> arguments = tiny_attention(shape_);
  arguments.insert(arguments.end(), {"--isa", "all", "--angles-zero"});
  run(arguments);
  EXPECT_EQ(report_.at("benchmark"), "attention");
  std::map<std::string, int> rows_of_isa;
  for (const json& row : report_.at("results")) {
    ++rows_of_isa[row.at("isa").get<std::string>()];
    EXPECT_GT(row.at("time_us").get<double>(), 0) << row;
    EXPECT_GT(row.at("gflops").get<double>(), 0) << row;
    EXPECT_LE(row.at("kv_megabytes_distinct"), row.at("kv_megabytes_read")) << row;
    EXPECT_LT(row.at("error").get<double>(), 0.0157) << row;
    EXPECT_GT(row.at("over_angles_zero").get<double>(), 0) << row;
    EXPECT_GT(row.at("over_unturned").get<double>(), 0) << row;
  }
  // Per number of query tokens: one request for each of three methods; three requests for lazy and
  // mepic in three ways, for block in one.
  ASSERT_FALSE(rows_of_isa.empty());
  for (const auto& [isa, rows] : rows_of_isa) EXPECT_EQ(rows, 2 * (3 + 7)) << isa;
  EXPECT_EQ(csv_.size(), report_.at("results").size() + 1);
  EXPECT_THAT(csv_[0], testing::StartsWith("isa,method,documents,query_tokens,context,batch"));
}

TEST_F(Bench, AttentionFailsOnAWrongResultButShowsIt) {
  std::vector<std::string> arguments = tiny_attention(shape_);
  arguments.insert(arguments.begin(), "bench");
  arguments.insert(arguments.end(), {"--max-error", "1e-9", "--method", "lazy"});
  const ProgramResult result = run_program(arguments);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.last_error_line(), HasSubstr("wrong result"));
  EXPECT_THAT(result.out, HasSubstr("GFLOP/s"));
}

TEST_F(Bench, AttentionCurveReadsSharedDocumentsOnce) {
  run({"attention", "--shape", shape_, "--curve", "--runs", "1", "--seconds", "0"});
  std::map<int, std::map<std::string, double>> read;  // MB, by batch and way of sharing
  for (const json& row : report_.at("results")) {
    read[row.at("batch")][row.at("documents")] = row.at("kv_megabytes_read").get<double>();
  }
  ASSERT_EQ(read.size(), 6);
  EXPECT_LT(read[32]["shared"], 1.05 * read[1]["own"]);
  EXPECT_NEAR(read[32]["unshared"], 32 * read[1]["own"], 0.01);
}

TEST_F(Bench, LinearMeasuresEveryLayerBesideOneDnn) {
  run({"linear", "--shape", shape_, "--rows", "1,5,70", "--runs", "1", "--seconds", "0", "--dtype",
       "float32"});
  EXPECT_EQ(report_.at("benchmark"), "linear");
  std::vector<std::string> layers;
  for (const json& row : report_.at("results")) {
    layers.push_back(row.at("layer").get<std::string>() + " " +
                     std::to_string(row.at("rows").get<int>()));
    for (const char* name :
         {"time_us", "gflops", "weight_gb_per_second", "onednn_gflops", "share_of_ceiling"}) {
      EXPECT_GT(row.at(name).get<double>(), 0) << name << " of " << row;
    }
  }
  EXPECT_THAT(layers, testing::ElementsAre("qkv 1", "qkv 5", "qkv 70", "o 1", "o 5", "o 70",
                                           "gate_up 1", "gate_up 5", "gate_up 70", "down 1",
                                           "down 5", "down 70", "lm_head 1", "lm_head 5"));
  EXPECT_EQ(csv_.size(), 15);
}

TEST_F(Bench, LinearFailsOnAWrongResult) {
  const ProgramResult result =
      run_program({"bench", "linear", "--shape", shape_, "--rows", "3", "--runs", "1", "--seconds",
                   "0", "--max-error", "1e-12"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.last_error_line(), HasSubstr("wrong result"));
}

TEST_F(Bench, WrongCallsAreRefused) {
  const auto refused = [&](const std::vector<std::string>& arguments, const std::string& message) {
    const ProgramResult result = run_program(arguments);
    EXPECT_EQ(result.exit_code, 2) << message;
    EXPECT_THAT(result.last_error_line(), HasSubstr(message));
  };
  refused({"bench"}, "no command; use one of serve, sweep, model, linear, attention");
  refused({"bench", "speed"}, "unknown command \"speed\"");
  refused({"bench", "linear"}, "(see anyslot bench linear --help)");
  refused({"bench", "linear", "--shape", shape_, "--seconds", "-1"},
          "--seconds: \"-1\" is not a number of at least 0");
  refused({"bench", "model"}, "--model is required");
  refused({"bench", "model", "--model", ANYSLOT_MODEL_DIR, "--random-weights", shape_}, "excludes");
  refused({"bench", "model", "--random-weights", folder_.file("none")}, "there is no file");
  refused({"bench", "model", "--random-weights", shape_, "--prompt-tokens", "0"}, "\"0\"");
  refused({"bench", "model", "--random-weights", shape_, "--method", "fast"}, "fast");
  refused({"bench", "model", "--random-weights", shape_, "--batch", "0"}, "\"0\"");
  refused({"bench", "model", "--random-weights", shape_, "--batch", "65"},
          "--max-running-requests");
  refused({"bench", "model", "--random-weights", shape_, "--reorder", "--peer", "cat"}, "--peer");
  refused({"bench", "attention"}, "--shape is required");
  refused({"bench", "attention", "--shape", shape_, "--method", "full"}, "full");
  refused({"bench", "attention", "--shape", shape_, "--documents", "some"}, "some");
  refused({"bench", "linear", "--shape", shape_, "--isa", "sse9"}, "sse9");
  refused({"bench", "model", "--random-weights", shape_, "--json", "/nowhere/x"}, "/nowhere/x");
}

}  // namespace
}  // namespace anyslot::bench
