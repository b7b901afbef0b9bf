// The command `inspect`; what it tells stands in inspect_test.cc.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "anyslot/inspect.h"
#include "cli/test_program.h"
#include "support/changed_model.h"
#include "support/temporary_folder.h"

namespace anyslot {
namespace {

using namespace testing_support;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kModel = ANYSLOT_MODEL_DIR;

TEST(InspectProgram, PrintsTables) {
  const cli::ProgramResult result = cli::run_program({"inspect", kModel});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.error, "");
  for (const char* part :
       {"\narchitecture    LlamaForCausalLM\n", "\nheads           6 of 64 dimensions, 2 of keys",
        "\ndefault method  lazy\n", "\nstop tokens     <|eot_id|> (4)\n", "\nBF16 ",
        "\nfloat32   int8 ", "Documents of 512 tokens that a KV cache of 4 GiB holds.",
        "\nAnySlot can serve this model.\n"}) {
    EXPECT_THAT(result.out, HasSubstr(part));
  }
}

TEST(InspectProgram, PrintsJson) {
  const InspectOptions options{.kv_cache_bytes = int64_t{1} << 20, .document_tokens = 100};
  const Expected<ModelReport> report = inspect_model(kModel, options);
  ASSERT_TRUE(report.ok());
  const cli::ProgramResult result = cli::run_program(
      {"inspect", "--json", kModel, "--kv-cache", "1MiB", "--document-tokens", "100"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const json object = json::parse(result.out);
  EXPECT_EQ(object.at("supported"), true);
  EXPECT_EQ(object.at("problems"), json::array());
  EXPECT_EQ(object.at("architecture"), "LlamaForCausalLM");
  EXPECT_EQ(object.at("parameters"), report->num_parameters);
  EXPECT_EQ(object.at("experts"), nullptr);
  EXPECT_EQ(object.at("windows"), json::parse(R"([{"tokens": null, "layers": 8}])"));
  EXPECT_EQ(object.at("rope").at(0).at("theta"), 10000);
  EXPECT_EQ(object.at("tensors").at(0).at("type"), "BF16");
  ASSERT_EQ(object.at("memory").size(), report->memory.size());
  EXPECT_EQ(object.at("memory").at(0).at("kv_bytes_per_token"),
            report->memory[0].kv_bytes_per_token);
  EXPECT_EQ(object.at("memory").at(0).at("documents"), report->memory[0].documents);
  EXPECT_GT(report->memory[0].documents, 0);
  EXPECT_EQ(object.at("tokenizer"), json::parse(R"({"unit": "byte", "tokens": 4096})"));
  EXPECT_EQ(object.at("chat_template"), nullptr);
  EXPECT_EQ(object.at("default_method"), "lazy");
  EXPECT_EQ(object.at("gpu"), json::parse(R"({"served": true, "problem": null})"));
}

TEST(InspectProgram, ReportsAndFailsForWhatCannotBeServed) {
  const ChangedModel model("llama-plain",
                           {{"architectures", json::array({"Strange\nForCausalLM"})}});
  const cli::ProgramResult text = cli::run_program({"inspect", model.path()});
  EXPECT_EQ(text.exit_code, 1);
  EXPECT_THAT(text.out, AllOf(HasSubstr("\narchitecture    Strange ForCausalLM\n"),
                              HasSubstr("\nlayers          3\n"), HasSubstr("\nF32 "),
                              HasSubstr("\nAnySlot cannot serve this model:\n- ")));
  ASSERT_EQ(text.error_lines().size(), 1);
  EXPECT_THAT(text.last_error_line(), HasSubstr("is not supported; supported: "));
  const cli::ProgramResult object = cli::run_program({"inspect", "--json", model.path()});
  EXPECT_EQ(object.exit_code, 1);
  const json report = json::parse(object.out);
  EXPECT_EQ(report.at("supported"), false);
  EXPECT_EQ(report.at("problems").size(), 1);
  EXPECT_EQ(report.at("parameters"), nullptr);
  EXPECT_EQ(report.at("hidden_size"), 64);
}

TEST(InspectProgram, PrintsNothingOfWhatCannotBeRead) {
  const cli::ProgramResult nowhere = cli::run_program({"inspect", "/nowhere.gguf"});
  EXPECT_EQ(nowhere.exit_code, 2);
  EXPECT_THAT(nowhere.last_error_line(),
              HasSubstr("there is no folder or GGUF file \"/nowhere.gguf\""));
  const TemporaryFolder folder;
  for (const std::string& path : {folder.path(), folder.write("bad.gguf", "GGUF")}) {
    const cli::ProgramResult result = cli::run_program({"inspect", path});
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(result.error_lines().size(), 1);
  }
  EXPECT_EQ(cli::run_program({"inspect", kModel, "--document-tokens", "0"}).exit_code, 2);
  EXPECT_EQ(cli::run_program({"inspect"}).exit_code, 2);
}

}  // namespace
}  // namespace anyslot
