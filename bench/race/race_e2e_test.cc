// `anyslot race` as it is called.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <thread>

#include "bench/serve/test_other_servers.h"
#include "bench/test_words.h"
#include "cli/test_program.h"
#include "server/test_server.h"
#include "support/temporary_folder.h"

namespace anyslot::bench {
namespace {

using cli::ProgramResult;
using testing::HasSubstr;
using testing::Not;

std::string read(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

ProgramResult race(const std::string& options, const std::vector<std::string>& more = {},
                   const cli::ProgramInput& input = {}) {
  std::vector<std::string> arguments = words_of("race " + options);
  arguments.insert(arguments.end(), more.begin(), more.end());
  return cli::run_program(arguments, input);
}

/// Milliseconds to the first token of a lane in a printed table; -1 for none.
double first_token(const std::string& out, const std::string& lane) {
  std::smatch match;
  const std::regex row("\n" + lane + " +([0-9.]+) ms");
  return std::regex_search(out, match, row) ? std::stod(match[1]) : -1;
}

constexpr const char* kSmall = "--threads 2 --kv-cache 64MiB";

TEST(RaceCommand, ShowsThatLazyIsSoonerOnTheBundledModel) {
  const testing_support::TemporaryFolder folder;
  const std::string picture = folder.file("race.svg");
  bool sooner = false;
  for (int attempt = 0; attempt < 3 && !sooner; ++attempt) {  // others may use the machine
    const ProgramResult result = race(kSmall, {"--seed", "5", "--record", picture});
    ASSERT_EQ(result.exit_code, 0) << result.error;
    EXPECT_THAT(result.out, Not(HasSubstr("\x1b")));
    EXPECT_THAT(result.out, HasSubstr("20 documents in a new order (seed 5)"));
    EXPECT_THAT(result.out, HasSubstr("Both gave the same answer, the right one."));
    const double lazy = first_token(result.out, "lazy");
    const double prefix = first_token(result.out, "prefix");
    ASSERT_GT(lazy, 0) << result.out;
    ASSERT_GT(prefix, 0) << result.out;
    sooner = lazy < prefix;
    const std::string svg = read(picture);
    EXPECT_THAT(svg, testing::StartsWith("<svg "));
    EXPECT_THAT(svg, testing::EndsWith("</svg>\n"));
    EXPECT_THAT(svg, HasSubstr("lazy found every document in its cache"));
  }
  EXPECT_TRUE(sooner);
}

TEST(RaceCommand, ChoosesQuestionDocumentsAndMethods) {
  const ProgramResult result =
      race(kSmall, words_of("--index 8 --documents 4 --method block,full --cold --max-tokens 2"));
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.out, HasSubstr("Which river flows through Nelwick?"));
  EXPECT_THAT(result.out, HasSubstr("4 documents; nothing was read before the race."));
  EXPECT_GT(first_token(result.out, "block"), 0);
  EXPECT_GT(first_token(result.out, "full"), 0);
}

TEST(RaceCommand, RacesTwoMethodsOfAServer) {
  server::TestServer server(server::bundled_config());
  const std::string url = "http://127.0.0.1:" + std::to_string(server.port());
  const ProgramResult result = race("--documents 6 --max-tokens 4 --url " + url);
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_GT(first_token(result.out, "lazy"), 0) << result.out;
  EXPECT_THAT(result.out, HasSubstr("lazy found every document in its cache"));
  EXPECT_THAT(result.out, HasSubstr("Both gave the same answer"));
}

TEST(RaceCommand, RacesOurServerAgainstAnother) {
  server::TestServer server(server::bundled_config());
  const auto peer = other_server_vllm();
  const FakeServer fake([&](const FakeRequest& request) { return peer->answer(request); });
  const std::string ours = "http://127.0.0.1:" + std::to_string(server.port());
  const ProgramResult result =
      race("--documents 4 --max-tokens 4 --a " + ours + " --b " + fake.url());
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.out, HasSubstr("of the prompt in its cache"));
  EXPECT_THAT(result.out, HasSubstr("The answers differ"));
  EXPECT_THAT(result.out, HasSubstr(" word word word word"));
}

TEST(RaceCommand, FailsWithTheLaneAndItsReason) {
  const testing_support::TemporaryFolder folder;
  const FakeServer server([](const FakeRequest& request) {
    if (request.target == "/v1/models") return fake_reply("200 OK", R"({"data": [{"id": "m"}]})");
    return answer_by_word(request);
  });
  const std::string rows =
      folder.write("rows.jsonl", R"({"documents": ["d"], "question": "do-fail"})"
                                 "\n");
  const std::string record = folder.file("race.svg");
  const ProgramResult result =
      race("--a " + server.url() + " --b " + server.url(), {"--input", rows, "--record", record});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.last_error_line(), HasSubstr("127.0.0.1"));
  EXPECT_THAT(result.last_error_line(), HasSubstr("full"));
  EXPECT_FALSE(std::filesystem::exists(record));
}

TEST(RaceCommand, TellsWhatIsWrongWithACall) {
  const std::vector<std::pair<std::string, std::string>> calls = {
      {"--method lazy", "two methods"},
      {"--method lazy,fast", "fast"},
      {"--index 0", "--index"},
      {"--index 9", "8 rows"},
      {"--documents 21", "has 20"},
      {"--input /nowhere.jsonl", "/nowhere.jsonl"},
      {"--model /nowhere", "--model: there is no folder or GGUF file"},
      {"--record /nowhere/race.svg", "/nowhere/race.svg"},
      {"--record -", "a file of its own"},
      {"--a http://127.0.0.1:1", "--b"},
      {"--url http://x --a http://x --b http://y", "--url"},
      {"--a http://x --b http://y --method lazy,full", "--method"},
      {"--url http://127.0.0.1:1 --threads 2", "--threads"},
      {"--url x --api-key k --api-key-file f", "--api-key"},
      {"--url ftp://x", "http://host:port"}};
  for (const auto& [options, expected] : calls) {
    const ProgramResult result = race(options);
    EXPECT_EQ(result.exit_code, 2) << options << "\n" << result.error;
    EXPECT_EQ(result.out, "") << options;
    EXPECT_THAT(result.last_error_line(), HasSubstr(expected)) << options;
  }
  EXPECT_EQ(race("--url http://127.0.0.1:1").exit_code, 1);  // nobody is there
}

/// What the program writes to a terminal of 80 columns.
class TerminalRun {
 public:
  explicit TerminalRun(const std::string& options) {
    const int master = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    EXPECT_GE(master, 0);
    EXPECT_EQ(::grantpt(master), 0);
    EXPECT_EQ(::unlockpt(master), 0);
    winsize size{};
    size.ws_col = 80;
    size.ws_row = 50;
    EXPECT_EQ(::ioctl(master, TIOCSWINSZ, &size), 0);
    cli::ProgramInput input;
    input.output_path = ::ptsname(master);
    const int slave = ::open(input.output_path.c_str(), O_RDWR | O_NOCTTY | O_CLOEXEC);
    EXPECT_GE(slave, 0);
    std::thread reader([&] {
      char buffer[4096];
      for (ssize_t n = 0; (n = ::read(master, buffer, sizeof buffer)) > 0;) {
        out.append(buffer, static_cast<size_t>(n));
      }
    });
    result = race(options, {}, input);
    ::close(slave);  // the last one: reading fails
    reader.join();
    ::close(master);
  }

  ProgramResult result;
  std::string out;
};

class OnATerminal : public ::testing::Test {
 protected:
  void SetUp() override {
    ::setenv("TERM", "xterm", 1);
    ::unsetenv("NO_COLOR");
  }
  void TearDown() override { ::unsetenv("NO_COLOR"); }

  const std::string options_ = std::string(kSmall) + " --documents 4 --max-tokens 4";
};

TEST_F(OnATerminal, ReplaysBothLanesInColours) {
  const TerminalRun run(options_);
  ASSERT_EQ(run.result.exit_code, 0) << run.result.error;
  EXPECT_THAT(run.out, HasSubstr("\x1b[?25l"));
  EXPECT_THAT(run.out, HasSubstr("\x1b[?25h"));  // the cursor is shown again
  EXPECT_THAT(run.out, testing::ContainsRegex("\x1b\\[[0-9]+A"));
  EXPECT_THAT(run.out, HasSubstr("48;5;"));
  EXPECT_THAT(run.out, HasSubstr("Both gave the same answer"));
}

TEST_F(OnATerminal, HasNoColoursForWhoWantsNone) {
  ::setenv("NO_COLOR", "1", 1);
  const TerminalRun by_variable(options_ + " --no-replay");
  ::unsetenv("NO_COLOR");
  const TerminalRun by_option(options_ + " --no-replay --no-color");
  for (const TerminalRun* run : {&by_variable, &by_option}) {
    ASSERT_EQ(run->result.exit_code, 0) << run->result.error;
    EXPECT_THAT(run->out, Not(testing::ContainsRegex("\x1b\\[[0-9;]*m")));
    EXPECT_THAT(run->out, Not(testing::ContainsRegex("\x1b\\[[0-9]+A")));
    EXPECT_THAT(run->out, HasSubstr("==="));
  }
}

TEST_F(OnATerminal, IsAskedForNothingThatItCannot) {
  ::setenv("TERM", "dumb", 1);
  const TerminalRun run(options_);
  ASSERT_EQ(run.result.exit_code, 0) << run.result.error;
  EXPECT_THAT(run.out, Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace anyslot::bench
