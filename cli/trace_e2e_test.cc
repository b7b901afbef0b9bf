// --trace: what the file holds, and how it ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "support/temporary_folder.h"
#include "test_program.h"

namespace anyslot::cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing_support::read_bytes;
using testing_support::TemporaryFolder;

constexpr const char* kRow =
    R"({"segments": [{"type": "document", "token_ids": [5, 6, 7]}, {"type": "text", "token_ids": [8, 9]}]})"
    "\n";

std::vector<json> read_events(const std::string& path) {
  std::vector<json> events;
  for (const json& event : json::parse(read_bytes(path))) {
    if (event.at("ph") == "X") events.push_back(event);
  }
  return events;
}

double begin_of(const json& event) { return event.at("ts").get<double>(); }
double end_of(const json& event) { return begin_of(event) + event.at("dur").get<double>(); }

class Trace : public testing::Test {
 protected:
  ProgramResult run_rows(const std::string& rows, std::vector<std::string> options,
                         const std::function<void(pid_t)>& on_output = {}) {
    std::vector<std::string> arguments = {"run", "--model", ANYSLOT_TEST_MODEL_DIR, "--input", "-"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    return run_program(arguments, {.text = rows, .on_output = on_output});
  }

  /// The events that lie in `whole`, by name.
  static std::map<std::string, std::vector<json>> events_in(const json& whole,
                                                            const std::vector<json>& events) {
    constexpr double kRounding = 1e-3;  // microseconds: the file has whole nanoseconds
    std::map<std::string, std::vector<json>> inside;
    for (const json& event : events) {
      if (event == whole || begin_of(event) > end_of(whole)) continue;
      if (end_of(event) < begin_of(whole)) continue;
      EXPECT_GE(begin_of(event), begin_of(whole) - kRounding) << event;
      EXPECT_LE(end_of(event), end_of(whole) + kRounding) << event;
      inside[event.at("name")].push_back(event);
    }
    return inside;
  }

  TemporaryFolder folder_;
  std::string path_ = folder_.file("trace.json");
};

TEST_F(Trace, HasEveryOperationOfEveryLayerInsideOfItsStep) {
  const ProgramResult result =
      run_rows(kRow, {"--max-tokens", "3", "--method", "lazy", "--trace", path_});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const size_t num_tokens = json::parse(result.out).at("token_ids").size();
  const json config = json::parse(read_bytes(ANYSLOT_TEST_MODEL_DIR "/config.json"));
  const auto num_layers = config.at("num_hidden_layers").get<size_t>();

  const std::vector<json> events = read_events(path_);
  std::vector<json> steps;
  for (const json& event : events) {
    if (event.at("name") == "step") steps.push_back(event);
  }
  ASSERT_EQ(steps.size(), num_tokens) << "the prompt's step gives the first token";
  for (size_t s = 0; s < steps.size(); ++s) {
    SCOPED_TRACE(s);
    const json& args = steps[s].at("args");
    EXPECT_EQ(args.at("step"), s);
    EXPECT_EQ(args.at("rows"), s == 0 ? 5 : 1);
    EXPECT_EQ(args.at("sequences"), s == 0 ? 2 : 1) << "the document is one of its own";
    EXPECT_GT(args.at("kv_tokens_read"), 0);
    auto inside = events_in(steps[s], events);
    for (const char* once : {"schedule", "forward", "commit", "sample", "deliver", "begin_step",
                             "embed", "gather_sampled", "argmax", "end_step"}) {
      EXPECT_EQ(inside[once].size(), 1) << once;
    }
    ASSERT_EQ(inside["attention"].size(), num_layers);
    ASSERT_EQ(inside["write_kv"].size(), num_layers);
    for (size_t layer = 0; layer < num_layers; ++layer) {
      EXPECT_EQ(inside["attention"][layer].at("args").at("layer"), layer);
      EXPECT_EQ(inside["write_kv"][layer].at("args").at("layer"), layer);
    }
    // The last layer computes Q apart from K and V, for the sampled rows alone.
    EXPECT_EQ(inside["linear"].size(), 4 * num_layers + 1 + 1) << "and the logits";
    EXPECT_EQ(inside["rms_norm"].size(), 2 * num_layers + 1 + 1) << "and the last one";
    EXPECT_EQ(inside["gated_silu"].size(), num_layers);
    std::vector<json> operations = inside["linear"];
    operations.insert(operations.end(), inside["attention"].begin(), inside["attention"].end());
    const auto forward = events_in(inside["forward"].front(), operations);
    EXPECT_EQ(forward.at("linear").size(), inside["linear"].size());
    EXPECT_EQ(forward.at("attention").size(), num_layers);
  }
}

TEST_F(Trace, IsWholeAfterCtrlC) {
  std::string rows;
  for (int i = 0; i < 20000; ++i) rows += kRow;
  const ProgramResult result =
      run_rows(rows, {"--trace", path_}, [](pid_t pid) { ::kill(pid, SIGINT); });
  ASSERT_EQ(result.exit_code, 130) << result.error;
  EXPECT_FALSE(read_events(path_).empty());
}

TEST_F(Trace, ToAnUnusablePathFailsBeforeTheModelIsLoaded) {
  const std::string missing = folder_.file("missing/trace.json");
  const ProgramResult result = run_program({"run", "--model", folder_.path(), "--input",
                                            folder_.write("rows", kRow), "--trace", missing});
  EXPECT_EQ(result.exit_code, 2);
  ASSERT_EQ(result.error_lines().size(), 1) << result.error;
  EXPECT_THAT(result.last_error_line(), HasSubstr(missing + ": No such file"));
  const ProgramResult dash = run_rows(kRow, {"--trace", "-"});
  EXPECT_EQ(dash.exit_code, 2);
  EXPECT_THAT(dash.last_error_line(), HasSubstr("--trace"));
}

TEST_F(Trace, OnAFullDiskLetsTheWorkGoOn) {
  const ProgramResult result =
      run_rows(std::string(kRow) + kRow, {"--max-tokens", "1", "--trace", "/dev/full"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(std::count(result.out.begin(), result.out.end(), '\n'), 2) << result.out;
  ASSERT_EQ(result.error_lines().size(), 1) << result.error;
  EXPECT_THAT(result.last_error_line(), HasSubstr("/dev/full: No space left"));
}

}  // namespace
}  // namespace anyslot::cli
