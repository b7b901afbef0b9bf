// The commands on real input, on the bundled model or the one that the tests are asked to run on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <thread>

#include "support/temporary_folder.h"
#include "test_program.h"
#include "test_tensor_file.h"

namespace anyslot::cli {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing_support::read_bytes;
using testing_support::TemporaryFolder;

std::vector<json> json_lines(const std::string& text) {
  std::vector<json> objects;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) objects.push_back(json::parse(line));
  return objects;
}

std::vector<std::string> keys_of(const json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  return keys;  // nlohmann::json sorts them
}

/// The first rows of a test file.
std::string rows_of(const std::string& name, int count) {
  std::istringstream lines(read_bytes(ANYSLOT_SOURCE_DIR "/tests/data/" + name));
  std::string rows;
  std::string line;
  for (int i = 0; i < count && std::getline(lines, line); ++i) rows += line + "\n";
  return rows;
}

ProgramResult run_rows(const std::string& rows, std::vector<std::string> options = {},
                       const std::string& model = ANYSLOT_TEST_MODEL_DIR) {
  std::vector<std::string> arguments = {"run", "--model", model, "--input", "-"};
  arguments.insert(arguments.end(), options.begin(), options.end());
  return run_program(arguments, {.text = rows});
}

TEST(Run, WritesTheNamedFields) {
  const ProgramResult result = run_rows(rows_of("2wiki-20.jsonl", 2), {"--max-tokens", "4"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const std::vector<json> rows = json_lines(result.out);
  ASSERT_EQ(rows.size(), 2);
  for (size_t r = 0; r < rows.size(); ++r) {
    const json& row = rows[r];
    EXPECT_THAT(keys_of(row), ElementsAre("documents", "finish_reason", "id", "method", "text",
                                          "timing", "token_ids", "usage"));
    EXPECT_EQ(row.at("id"), r + 1) << "the line number of a row without id";
    EXPECT_THAT(keys_of(row.at("usage")),
                ElementsAre("completion_tokens", "prompt_tokens", "prompt_tokens_details"));
    EXPECT_EQ(row.at("usage").at("completion_tokens"), row.at("token_ids").size());
    EXPECT_LE(row.at("token_ids").size(), 4);
    EXPECT_THAT(keys_of(row.at("timing")), ElementsAre("total_ms", "ttft_ms"));
    EXPECT_GT(row.at("timing").at("ttft_ms"), 0);
    EXPECT_GE(row.at("timing").at("total_ms"), row.at("timing").at("ttft_ms"));
    ASSERT_EQ(row.at("documents").size(), 10);
    int64_t tokens = 0;
    for (size_t d = 0; d < 10; ++d) {
      const json& document = row.at("documents").at(d);
      EXPECT_THAT(keys_of(document),
                  ElementsAre("cached_tokens", "id", "index", "source", "tokens"));
      EXPECT_EQ(document.at("index"), d);
      tokens += document.at("tokens").get<int64_t>();
    }
    EXPECT_LT(tokens, row.at("usage").at("prompt_tokens"));
  }
}

TEST(Run, EndsWithASummary) {
  const ProgramResult result = run_rows(rows_of("2wiki-20.jsonl", 2), {"--max-tokens", "2"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const json summary = json::parse(result.last_error_line());
  EXPECT_THAT(keys_of(summary), ElementsAre("cached_token_ratio", "contains_match", "exact_match",
                                            "f1", "kv_tokens_read", "output_tokens_per_second",
                                            "prompt_tokens_per_second", "requests", "ttft_ms"));
  EXPECT_EQ(summary.at("requests"), 2);
  EXPECT_THAT(keys_of(summary.at("ttft_ms")), ElementsAre("median", "p95"));
  EXPECT_GT(summary.at("kv_tokens_read"), 0);
}

TEST(Run, KeepsTheOrderAndTheAnswersUnderConcurrency) {
  const std::string rows = rows_of("2wiki-20.jsonl", 6);
  const std::vector<std::string> options = {"--max-tokens", "4", "--dtype", "float32"};
  std::vector<std::string> at_once = options;
  at_once.insert(at_once.end(), {"--concurrency", "4"});
  const std::vector<json> alone = json_lines(run_rows(rows, options).out);
  const std::vector<json> together = json_lines(run_rows(rows, at_once).out);
  ASSERT_EQ(alone.size(), 6);
  ASSERT_EQ(together.size(), 6);
  for (size_t r = 0; r < 6; ++r) {
    EXPECT_EQ(together[r].at("id"), r + 1);
    EXPECT_EQ(together[r].at("token_ids"), alone[r].at("token_ids")) << "row " << r + 1;
  }
}

TEST(Run, ReadsDocumentsFromThePoolTheSecondTime) {
  const std::string row = rows_of("2wiki-20.jsonl", 1);
  const std::vector<json> rows =
      json_lines(run_rows(row + row, {"--max-tokens", "1", "--method", "lazy"}).out);
  ASSERT_EQ(rows.size(), 2);
  for (const json& document : rows[0].at("documents")) {
    EXPECT_EQ(document.at("source"), "computed");
    EXPECT_EQ(document.at("cached_tokens"), 0);
  }
  for (const json& document : rows[1].at("documents")) {
    EXPECT_EQ(document.at("source"), "pool");
    EXPECT_EQ(document.at("cached_tokens"), document.at("tokens"));
  }
}

TEST(Run, TakesMethodAndLengthFromTheRow) {
  std::string rows;
  for (const char* method : {"lazy", "block", "mepic", "prefix", "full"}) {
    json row = json::parse(rows_of("2wiki-20.jsonl", 1));
    row["method"] = method;
    row["max_tokens"] = 1;
    row["id"] = method;
    rows += row.dump() + "\n";
  }
  const std::vector<json> outputs = json_lines(run_rows(rows).out);
  ASSERT_EQ(outputs.size(), 5);
  for (const json& output : outputs) {
    EXPECT_EQ(output.at("method"), output.at("id"));
    EXPECT_EQ(output.at("token_ids").size(), 1);
  }
}

TEST(Run, HasNullScoresWithoutAnswers) {
  const ProgramResult result = run_rows(
      R"({"segments": [{"type": "document", "token_ids": [5, 6, 7], "id": "d"}, {"type": "text", "token_ids": [8, 9]}]})",
      {"--max-tokens", "1"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_TRUE(json::parse(result.last_error_line()).at("exact_match").is_null());
  const json row = json::parse(result.out);
  EXPECT_EQ(row.at("usage").at("prompt_tokens"), 5);
  EXPECT_EQ(row.at("documents").at(0).at("id"), "d");
}

TEST(Run, AnswersTheBundledModelsQuestions) {
  const ProgramResult result = run_rows(
      read_bytes(ANYSLOT_SOURCE_DIR "/models/demo/questions.jsonl"), {}, ANYSLOT_MODEL_DIR);
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const json summary = json::parse(result.last_error_line());
  EXPECT_DOUBLE_EQ(summary.at("exact_match"), 1);
  EXPECT_DOUBLE_EQ(summary.at("f1"), 1);
}

TEST(Run, WritesTheOutputFileWhole) {
  TemporaryFolder folder;
  const ProgramResult result = run_rows(
      rows_of("2wiki-20.jsonl", 1), {"--max-tokens", "1", "--output", folder.file("out.jsonl")});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(json_lines(read_bytes(folder.file("out.jsonl"))).size(), 1);
  EXPECT_EQ(folder.num_entries(), 1);
}

TEST(Run, EndsAtCtrlC) {
  std::string rows;
  for (int i = 0; i < 200; ++i) rows += rows_of("2wiki-20.jsonl", 20);
  const ProgramResult result =
      run_program({"run", "--model", ANYSLOT_TEST_MODEL_DIR, "--input", "-"},
                  {.text = rows, .on_output = [](pid_t pid) { ::kill(pid, SIGINT); }});
  EXPECT_EQ(result.exit_code, 130);
  EXPECT_THAT(result.error, HasSubstr("interrupted"));
}

TEST(Ask, StreamsTheAnswerAndTellsTheTime) {
  TemporaryFolder folder;
  const std::string first = folder.write(
      "Lornaburg.txt", "Lornaburg is a city in Japan. The river Masa flows through it.\n");
  const std::string second =
      folder.write("Fenholm.txt",
                   "Fenholm is a city in Norway on the river Lorzi. Its population is 628,761.\n");
  const std::string question = "Which river flows through Lornaburg?";
  const std::vector<std::string> begin = {"ask", "--model", ANYSLOT_MODEL_DIR};
  const std::vector<std::vector<std::string>> spellings = {
      {"--document", first, second, question},
      {"--document", first, "--document", second, question},
      {question, "--document", first, second},
      {"--document", first, second, "--max-tokens", "8", question}};
  for (const std::vector<std::string>& spelling : spellings) {
    std::vector<std::string> arguments = begin;
    arguments.insert(arguments.end(), spelling.begin(), spelling.end());
    const ProgramResult result = run_program(arguments);
    ASSERT_EQ(result.exit_code, 0) << result.error;
    EXPECT_EQ(result.out, "Masa\n");
    EXPECT_THAT(result.error, MatchesRegex("time to first token [0-9.]+ ms, [0-9]+ of [0-9]+ "
                                           "prompt tokens cached\n"));
  }
}

TEST(Ask, StopsAtAText) {
  TemporaryFolder folder;
  const std::string document = folder.write(
      "Lornaburg.txt", "Lornaburg is a city in Japan. The river Masa flows through it.\n");
  const ProgramResult result =
      run_program({"ask", "--model", ANYSLOT_MODEL_DIR, "--document", document, "--stop", "never",
                   "--stop", "as", "Which river flows through Lornaburg?"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(result.out, "M\n");
}

TEST(Ask, TellsWhatCutTheAnswer) {
  TemporaryFolder folder;
  const std::string document = folder.write(
      "Lornaburg.txt", "Lornaburg is a city in Japan. The river Masa flows through it.\n");
  const auto ask = [&](const std::string& option, const std::string& value) {
    const ProgramResult result =
        run_program({"ask", "--model", ANYSLOT_MODEL_DIR, "--document", document, option, value,
                     "Which river flows through Lornaburg?"});
    EXPECT_EQ(result.exit_code, 0) << result.error;
    return result.error;
  };
  const std::string cut = ask("--max-tokens", "1");
  ASSERT_THAT(cut, HasSubstr(", answer cut at --max-tokens\n"));
  const int prompt_tokens = std::stoi(cut.substr(cut.find(" of ") + 4));
  EXPECT_THAT(ask("--max-model-len", std::to_string(prompt_tokens + 1)),
              HasSubstr(", answer cut at the model's length (--max-model-len)\n"));
}

TEST(Logits, WritesOneRowPerTextToken) {
  TemporaryFolder folder;
  const std::string input = folder.write(
      "segments.json",
      R"({"segments": [{"type": "document", "token_ids": [1, 2, 3]}, {"type": "text", "token_ids": [4, 5, 6, 7]},
          {"type": "document", "token_ids": [8]}, {"type": "text", "token_ids": [9]}]})");
  std::map<std::string, std::vector<float>> logits;
  for (const char* method : {"lazy", "block", "mepic"}) {
    const std::string output = folder.file(std::string(method));
    const ProgramResult result =
        run_program({"logits", "--model", ANYSLOT_TEST_MODEL_DIR, "--input", input, "--output",
                     output, "--method", method, "--dtype", "float32"});
    ASSERT_EQ(result.exit_code, 0) << result.error;
    const TensorFileParts file = parse_tensor_file(read_bytes(output));
    const json& tensor = file.header.at("logits");
    EXPECT_EQ(tensor.at("dtype"), "F32");
    ASSERT_EQ(tensor.at("shape").size(), 2);
    EXPECT_EQ(tensor.at("shape").at(0), 5);
    EXPECT_EQ(file.data.size(), 5 * tensor.at("shape").at(1).get<size_t>() * sizeof(float));
    logits[method].resize(file.data.size() / sizeof(float));
    std::memcpy(logits[method].data(), file.data.data(), file.data.size());
  }
  float largest = 0;
  for (const float value : logits["lazy"]) largest = std::max(largest, std::fabs(value));
  EXPECT_GT(largest, 0);
  for (const char* method : {"block", "mepic"}) {
    for (size_t i = 0; i < logits["lazy"].size(); ++i) {
      ASSERT_NEAR(logits[method][i], logits["lazy"][i], 1e-4 * largest) << method;
    }
  }
}

TEST(Logits, GoToStandardOutputToo) {
  TemporaryFolder folder;
  const std::string input =
      folder.write("segments.json", R"({"segments": [{"type": "text", "token_ids": [4, 5]}]})");
  const auto write_to = [&](const std::string& output, const std::string& standard_output = "") {
    const ProgramResult result = run_program(
        {"logits", "--model", ANYSLOT_TEST_MODEL_DIR, "--input", input, "--output", output},
        {.output_path = standard_output});
    EXPECT_EQ(result.exit_code, 0) << result.error;
    EXPECT_THAT(result.error, MatchesRegex("logits .2, [0-9]+., float32\n"));
    return result.out;
  };
  EXPECT_EQ(write_to(folder.file("logits")), "");
  const std::string bytes = read_bytes(folder.file("logits"));
  EXPECT_EQ(parse_tensor_file(bytes).header.at("logits").at("shape").at(0), 2);
  EXPECT_TRUE(write_to("-") == bytes);
  EXPECT_TRUE(write_to("/dev/stdout") == bytes) << "into a pipe";
  write_to("/dev/stdout", folder.write("redirected", ""));
  EXPECT_TRUE(read_bytes(folder.file("redirected")) == bytes) << "into a file";
  EXPECT_EQ(folder.num_entries(), 3) << "the input and the two outputs";
}

TEST(Validate, PassesTheBundledModel) {
  const ProgramResult result = run_program({"validate", "--model", ANYSLOT_MODEL_DIR});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.error;
  EXPECT_THAT(result.out, HasSubstr("lazy and mepic"));
  EXPECT_THAT(result.out, HasSubstr("valid: 8 cases"));
}

// With the documents' angles ignored, questions on their order cannot be answered any more.
TEST(Validate, NamesALostFact) {
  TemporaryFolder folder;
  json row = json::parse(rows_of("ragqa-dev.jsonl", 1));
  row["id"] = "order";
  row["question"] = "What is the title of the last document?";
  row["answers"] = {row["documents"].back()["title"]};
  const std::string input = folder.write("rows.jsonl", row.dump() + "\n");
  const std::vector<std::string> call = {"validate", "--model", ANYSLOT_MODEL_DIR, "--input",
                                         input};
  std::vector<std::string> control = call;
  control.emplace_back("--ignore-placement-angles");
  const ProgramResult result = run_program(control);
  EXPECT_EQ(result.exit_code, 1);
  ASSERT_EQ(result.error_lines().size(), 1) << result.error;
  EXPECT_THAT(result.last_error_line(),
              HasSubstr("case order: a fact is lost between inlined and"));
}

TEST(Demo, PrintsATableOfAllMethods) {
  const ProgramResult result = run_program({"demo", "--orders", "1"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(result.error, "") << "no progress bar without a terminal";
  EXPECT_THAT(
      result.out,
      HasSubstr("method  median time to first token  speed-up  cached tokens  exact match\n"));
  EXPECT_THAT(result.out, HasSubstr("Why: "));
  std::map<std::string, std::string> rows;
  std::istringstream lines(result.out);
  for (std::string line; std::getline(lines, line);) rows[line.substr(0, line.find(' '))] = line;
  for (const char* method : {"lazy", "block", "mepic", "prefix", "full"}) {
    EXPECT_THAT(rows[method], MatchesRegex("[a-z]+ +[0-9.]+ ms +[0-9.]+x +[0-9]+% +(9[0-9]|100)%"));
  }
  EXPECT_THAT(rows["full"], HasSubstr(" 1.0x "));
  EXPECT_THAT(rows["full"], HasSubstr(" 0% "));
}

TEST(Doctor, FindsThisMachineFit) {
  const ProgramResult result = run_program({"doctor"});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.error;
  for (const char* part : {"cpu", "threads", "memory", "oneDNN", "bundled model answers"}) {
    EXPECT_THAT(result.out, HasSubstr(part));
  }
}

TEST(Help, NamesEveryCommandAndItsOptions) {
  const ProgramResult program = run_program({"--help"});
  EXPECT_EQ(program.exit_code, 0);
  for (const char* command :
       {"run", "ask", "logits", "validate", "demo", "race", "inspect", "doctor"}) {
    EXPECT_THAT(program.out, HasSubstr(std::string("\n  ") + command + " "));
    const ProgramResult help = run_program({command, "--help"});
    EXPECT_EQ(help.exit_code, 0);
    EXPECT_THAT(help.out, HasSubstr("--help"));
  }
  EXPECT_THAT(run_program({"--version"}).out, MatchesRegex("anyslot [0-9]+\\.[0-9]+\\.[0-9]+\n"));
}

// docs/usage.md is the page for every option that --help knows.
TEST(Help, AgreesWithTheUsagePage) {
  const std::string page = read_bytes(ANYSLOT_SOURCE_DIR "/docs/usage.md");
  for (const char* command :
       {"run", "ask", "logits", "validate", "demo", "race", "inspect", "doctor"}) {
    std::istringstream lines(run_program({command, "--help"}).out);
    for (std::string line; std::getline(lines, line);) {
      const size_t begin = line.find("  --");
      if (begin != 0) continue;
      const std::string option = line.substr(2, line.find(' ', 2) - 2);
      EXPECT_THAT(page, HasSubstr("`" + option)) << command;
    }
  }
}

}  // namespace
}  // namespace anyslot::cli
