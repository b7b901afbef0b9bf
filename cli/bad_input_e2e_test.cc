// Bad input gets one clear line and exit code 1 or 2, and nothing half-written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/temporary_folder.h"
#include "test_program.h"
#include "test_tensor_file.h"

namespace anyslot::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing_support::read_bytes;
using testing_support::TemporaryFolder;

constexpr const char* kRow = R"({"documents": ["A river.\n"], "question": "Which river?"})";

void expect_failure(const ProgramResult& result, int exit_code,
                    const testing::Matcher<std::string>& line) {
  EXPECT_EQ(result.exit_code, exit_code) << result.error;
  ASSERT_EQ(result.error_lines().size(), 1) << result.error;
  EXPECT_EQ(result.error_lines().front(), result.last_error_line());
  EXPECT_THAT(result.last_error_line(), line);
}

class BadCall : public testing::Test {
 protected:
  ProgramResult run_rows(const std::string& rows, std::vector<std::string> options = {}) {
    std::vector<std::string> arguments = {"run",
                                          "--model",
                                          ANYSLOT_MODEL_DIR,
                                          "--input",
                                          folder_.write("rows.jsonl", rows + "\n"),
                                          "--output",
                                          folder_.file("out.jsonl")};
    arguments.insert(arguments.end(), options.begin(), options.end());
    ProgramResult result = run_program(arguments);
    EXPECT_EQ(folder_.num_entries(), 1) << "only the input may be there";
    return result;
  }
  TemporaryFolder folder_;
};

TEST_F(BadCall, OfAClosedStandardInput) {
  expect_failure(
      run_program({"run", "--model", ANYSLOT_MODEL_DIR, "--input", "-"}, {.close_input = true}), 2,
      HasSubstr("standard input"));
}

TEST_F(BadCall, OfTheCommand) {
  expect_failure(run_program({}), 2, HasSubstr("anyslot demo"));
  expect_failure(run_program({"fly"}), 2, HasSubstr("unknown command \"fly\""));
  expect_failure(run_program({"--fast"}), 2, HasSubstr("unknown option \"--fast\""));
  expect_failure(run_program({"run"}), 2, HasSubstr("required"));
  expect_failure(run_program({"run", "--input", "-"}), 2, HasSubstr("--model is required"));
  expect_failure(run_program({"run", "--model", "/nowhere", "--input", "-"}), 2,
                 HasSubstr("/nowhere"));
  expect_failure(run_program({"doctor", "--fast"}), 2, HasSubstr("--fast"));
}

TEST_F(BadCall, OfAnOption) {
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{"--method", "magic"}, "lazy, block, mepic, prefix or full"},
      {{"--dtype", "int8"}, "bfloat16, float16 or float32"},
      {{"--kv-cache-dtype", "fp8_e5m2"}, "auto, fp8 or fp8_e4m3"},
      {{"--kv-cache", "4GB"}, "512MiB"},
      {{"--kv-cache", "0"}, "0 bytes"},
      {{"--threads", "0"}, "--threads"},
      {{"--threads", "two"}, "--threads"},
      {{"--concurrency", "0"}, "--concurrency"},
      {{"--concurrency", "1025"}, "--concurrency: \"1025\" is not a whole number from 1 to 1024"},
      {{"--max-tokens", "99999999999"}, "--max-tokens"},
      {{"--temperature", "-1"}, "--temperature"},
      {{"--temperature", "nan"}, "--temperature"},
      {{"--top-p", "0"}, "--top-p"},
      {{"--top-p", "1.5"}, "--top-p"},
      {{"--top-k", "-1"}, "--top-k"},
      {{"--seed", "x"}, "--seed"},
      {{"--min-p", "1.1"}, "--min-p"},
      {{"--repetition-penalty", "0"}, "--repetition-penalty"},
      {{"--presence-penalty", "3"}, "--presence-penalty"},
      {{"--frequency-penalty", "-2.5"}, "--frequency-penalty"},
      {{"--min-tokens", "65"}, "min_tokens is 65; it must be between 0 and max_tokens, 64"},
      {{"--stop", ""}, "stop string 0 is empty"},
      {{"--device", "abacus"}, "cpu, cuda, reference"},
      {{"--isa", "mmx"}, "avx512"},
      {{"surplus"}, "surplus"}};
  for (const auto& [options, part] : cases) {
    expect_failure(run_rows(kRow, options), 2, HasSubstr(part));
  }
}

TEST_F(BadCall, OfAnInputFile) {
  expect_failure(run_rows(std::string(kRow) + "\n{\"documents\": ["), 2,
                 AllOf(HasSubstr("rows.jsonl:2: "), HasSubstr("invalid JSON")));
  expect_failure(run_rows("{\"documents\": [\"\xff\"], \"question\": \"q\"}"), 2,
                 HasSubstr("rows.jsonl:1: column 17: invalid UTF-8"));
  expect_failure(run_rows(R"({"documents": ["d"]})"), 2, HasSubstr("no question"));
  expect_failure(run_rows(""), 2, HasSubstr("holds no rows"));
  expect_failure(
      run_program({"run", "--model", ANYSLOT_MODEL_DIR, "--input", folder_.file("missing.jsonl")}),
      2, HasSubstr("missing.jsonl: No such file"));
}

TEST_F(BadCall, OfAnOutput) {
  const std::string rows = folder_.write("rows.jsonl", std::string(kRow) + "\n");
  for (const std::string& output : {folder_.file("no/such/folder"), std::string("/proc")}) {
    expect_failure(
        run_program({"run", "--model", ANYSLOT_MODEL_DIR, "--input", rows, "--output", output}), 2,
        HasSubstr("cannot write " + output));
  }
  EXPECT_EQ(folder_.num_entries(), 1);
}

TEST_F(BadCall, LeavesAnOldOutputAlone) {
  folder_.write("out.jsonl", "old");
  const std::string rows = folder_.write("rows.jsonl", std::string(kRow) + "\n");
  const ProgramResult result =
      run_program({"run", "--model", ANYSLOT_MODEL_DIR, "--input", rows, "--output",
                   folder_.file("out.jsonl"), "--max-model-len", "8"});
  expect_failure(result, 1, HasSubstr("length of 8"));
  EXPECT_EQ(read_bytes(folder_.file("out.jsonl")), "old");
  EXPECT_EQ(folder_.num_entries(), 2);
}

TEST_F(BadCall, OfASegmentsFile) {
  const auto logits_of = [&](const std::string& text) {
    return run_program({"logits", "--model", ANYSLOT_MODEL_DIR, "--input",
                        folder_.write("segments.json", text), "--output",
                        folder_.file("logits.safetensors")});
  };
  expect_failure(logits_of("{\n\"segments\": [}\n"), 2,
                 AllOf(HasSubstr("segments.json:2: "), HasSubstr("invalid JSON")));
  expect_failure(logits_of(R"({"segments": [{"type": "text", "token_ids": [4096]}]})"), 2,
                 HasSubstr("token id 4096"));
  expect_failure(logits_of(R"({"segments": [{"type": "document", "token_ids": [1]}]})"), 2,
                 HasSubstr("last segment is a document"));
  EXPECT_EQ(folder_.num_entries(), 1);
  expect_failure(run_program({"logits", "--model", ANYSLOT_MODEL_DIR, "--input", "-", "--output",
                              folder_.file("no/such/folder")},
                             {.text = R"({"segments": [{"type": "text", "token_ids": [1]}]})"}),
                 2, HasSubstr("cannot write"));
}

TEST_F(BadCall, OfADocument) {
  const auto ask = [&](const std::string& file) {
    return run_program({"ask", "--model", ANYSLOT_MODEL_DIR, "--document", file, "Who?"});
  };
  expect_failure(ask(folder_.file("missing.txt")), 2, HasSubstr("missing.txt: No such file"));
  expect_failure(ask(folder_.write("empty.txt", " \n")), 2, HasSubstr("empty.txt is empty"));
  expect_failure(ask(folder_.write("latin1.txt", "caf\xe9 noir")), 2,
                 HasSubstr("invalid UTF-8 at byte 4"));
  expect_failure(ask(folder_.write("zero.txt", std::string("a\0b", 3))), 2,
                 HasSubstr("zero bytes"));
}

TEST_F(BadCall, WithoutAQuestion) {
  const std::string file = folder_.write("a.txt", "text");
  const std::vector<std::string> call = {"ask", "--model", ANYSLOT_MODEL_DIR, "--document", file};
  for (const std::string& question : {std::string(), std::string("  "), file}) {
    std::vector<std::string> arguments = call;
    arguments.push_back(question);
    expect_failure(run_program(arguments), 2, HasSubstr("no question"));
  }
  expect_failure(run_program(call), 2, HasSubstr("no question"));
}

// A prompt that does not fit is refused in one way, whatever it does not fit into.
TEST_F(BadCall, WithAPromptThatDoesNotFit) {
  expect_failure(run_rows(kRow, {"--max-model-len", "64"}), 1,
                 AllOf(HasSubstr("rows.jsonl:1: row 1: "), HasSubstr("length of 64"),
                       HasSubstr("raise --max-model-len")));
  expect_failure(run_rows(kRow, {"--kv-cache", "128KiB"}), 1,
                 AllOf(HasSubstr("rows.jsonl:1: row 1: "), HasSubstr("the pool has"),
                       HasSubstr("MiB"), HasSubstr("raise --kv-cache")));
  expect_failure(run_rows(kRow, {"--kv-cache", "1KiB"}), 1, HasSubstr("raise --kv-cache"));
}

TEST_F(BadCall, OfTheControlUnderAnotherMethod) {
  const std::string control = "--ignore-placement-angles";
  expect_failure(run_rows(kRow, {control, "--method", "block"}), 2,
                 AllOf(HasSubstr(control), HasSubstr("method block")));
  json row = json::parse(kRow);
  row["method"] = "mepic";
  expect_failure(run_rows(row.dump(), {control}), 2,
                 AllOf(HasSubstr("rows.jsonl:1: "), HasSubstr("method mepic")));
}

TEST_F(BadCall, OnAFullDisk) {
  const std::string rows = folder_.write("rows.jsonl", std::string(kRow) + "\n");
  expect_failure(
      run_program({"run", "--model", ANYSLOT_MODEL_DIR, "--input", rows, "--output", "/dev/full"}),
      1, HasSubstr("cannot write /dev/full: No space left"));
  expect_failure(run_program({"run", "--model", ANYSLOT_MODEL_DIR, "--input", rows},
                             {.output_path = "/dev/full"}),
                 1, HasSubstr("cannot write standard output: No space left"));
  expect_failure(
      run_program({"logits", "--model", ANYSLOT_MODEL_DIR, "--input", "-", "--output", "/dev/full"},
                  {.text = R"({"segments": [{"type": "text", "token_ids": [1]}]})"}),
      1, HasSubstr("cannot write /dev/full: No space left"));
}

TEST_F(BadCall, IntoAClosedPipe) {
  const std::string rows = folder_.write("rows.jsonl", std::string(kRow) + "\n");
  expect_failure(
      run_program({"run", "--model", ANYSLOT_MODEL_DIR, "--input", rows}, {.close_output = true}),
      1, HasSubstr("cannot write standard output: Broken pipe"));
  expect_failure(run_program({"--help"}, {.close_output = true}), 1, HasSubstr("Broken pipe"));
}

/// A copy of the bundled model that a test spoils. Files stay links until they are changed.
class BadModel : public testing::Test {
 protected:
  void SetUp() override {
    for (const fs::directory_entry& entry : fs::directory_iterator(ANYSLOT_MODEL_DIR)) {
      fs::create_symlink(entry.path(), model_.file(entry.path().filename().string()));
    }
  }
  void replace(const std::string& name, const std::string& text) {
    fs::remove(model_.file(name));
    model_.write(name, text);
  }
  void change_json(const std::string& name, const std::function<void(json&)>& change) {
    json object = json::parse(read_bytes(model_.file(name)));
    change(object);
    replace(name, object.dump());
  }
  /// Changes the header's entry of one tensor of the last shard.
  void change_tensor(const std::function<void(json&)>& change) {
    TensorFileParts parts = parse_tensor_file(read_bytes(model_.file(kShard)));
    for (auto& [name, tensor] : parts.header.items()) {
      if (name == "__metadata__") continue;
      change(tensor);
      break;
    }
    replace(kShard, tensor_file_bytes(parts));
  }
  void expect_refused(const testing::Matcher<std::string>& line) {
    expect_failure(run_program({"run", "--model", model_.file(""), "--input", "-", "--output",
                                outputs_.file("out.jsonl")},
                               {.text = kRow}),
                   1, line);
    EXPECT_EQ(outputs_.num_entries(), 0);
  }

  static constexpr const char* kShard = "model-00002-of-00002.safetensors";
  TemporaryFolder model_;
  TemporaryFolder outputs_;
};

TEST_F(BadModel, WithoutAShard) {
  fs::remove(model_.file(kShard));
  expect_refused(HasSubstr(kShard));
}

TEST_F(BadModel, WithATruncatedShard) {
  std::string bytes = read_bytes(model_.file(kShard));
  bytes.resize(bytes.size() / 2);
  replace(kShard, bytes);
  expect_refused(HasSubstr(kShard));
}

TEST_F(BadModel, WithAnEmptyShard) {
  replace(kShard, "");
  expect_refused(HasSubstr(kShard));
}

TEST_F(BadModel, WithAnUnusableDtype) {
  change_tensor([](json& tensor) { tensor["dtype"] = "I16"; });
  expect_refused(AllOf(HasSubstr(kShard), HasSubstr("I16")));
}

TEST_F(BadModel, WithAWrongShape) {
  change_tensor([](json& tensor) {
    json& shape = tensor["shape"];
    shape = shape.size() == 2 ? json{shape[0], shape[1].get<int64_t>() / 2, 2}
                              : json{shape[0].get<int64_t>() / 2, 2};
  });
  expect_refused(HasSubstr("shape"));
}

TEST_F(BadModel, WithOffsetsOutsideTheFile) {
  change_tensor([](json& tensor) {
    for (json& offset : tensor["data_offsets"]) offset = offset.get<int64_t>() + (int64_t{1} << 40);
  });
  expect_refused(HasSubstr(kShard));
}

TEST_F(BadModel, OfAnUnknownArchitecture) {
  change_json("config.json", [](json& config) {
    config["architectures"] = {"AbacusForCausalLM"};
    config["model_type"] = "abacus";
  });
  expect_refused(HasSubstr("AbacusForCausalLM"));
}

TEST_F(BadModel, WithInvalidJson) {
  replace("config.json", "{\n\"vocab_size\": 4096,\n\"hidden_size\" 384\n}\n");
  expect_refused(AllOf(HasSubstr("config.json"), HasSubstr("line 3")));
  replace("config.json", read_bytes(std::string(ANYSLOT_MODEL_DIR) + "/config.json"));
  replace("rag_template.json", "{\n\"version\": 1,,\n}\n");
  expect_refused(AllOf(HasSubstr("rag_template.json"), HasSubstr("line 2")));
}

TEST_F(BadModel, WithALinkToItself) {
  for (const std::string name : {"config.json", "tokenizer.json", "rag_template.json"}) {
    fs::rename(model_.file(name), model_.file("kept"));
    fs::create_symlink(name, model_.file(name));
    expect_refused(AllOf(HasSubstr(name), Not(HasSubstr("filesystem error"))));
    fs::remove(model_.file(name));
    fs::rename(model_.file("kept"), model_.file(name));
  }
}

TEST_F(BadModel, WithDeeplyNestedJson) {
  const std::string deep = "{\"a\": " + std::string(200000, '[') + std::string(200000, ']') + "}";
  for (const std::string name : {"config.json", "tokenizer.json", "rag_template.json"}) {
    const std::string before = read_bytes(model_.file(name));
    replace(name, deep);
    expect_refused(AllOf(HasSubstr(name), HasSubstr("nests deeper")));
    replace(name, before);
  }
}

TEST_F(BadModel, WithABrokenTokenizer) {
  replace("tokenizer.json", "{\"model\": {\"type\": \"Unigram\"}}");
  expect_refused(HasSubstr("tokenizer.json"));
}

TEST_F(BadModel, WithoutATemplate) {
  fs::remove(model_.file("rag_template.json"));
  expect_refused(HasSubstr("rag_template.json"));
}

}  // namespace
}  // namespace anyslot::cli
