#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include "server/test_client.h"
#include "test_program.h"

namespace anyslot::cli {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::string kModel = ANYSLOT_TEST_MODEL_DIR;

/// One that nobody listened on a moment ago.
uint16_t free_port() {
  boost::asio::io_context io;
  const server::Tcp::acceptor acceptor(io, {boost::asio::ip::make_address("127.0.0.1"), 0});
  return acceptor.local_endpoint().port();
}

std::vector<std::string> serve(uint16_t port, std::vector<std::string> more = {}) {
  std::vector<std::string> arguments = {"serve",       "--model", kModel,
                                        "--kv-cache",  "64MiB",   "--served-model-name",
                                        "m",           "--port",  std::to_string(port),
                                        "--log-level", "warning"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

json long_answer(int max_tokens) {
  return {{"model", "m"},
          {"prompt", "The river"},
          {"max_tokens", max_tokens},
          {"ignore_eos", true},
          {"stream", true}};
}

TEST(Serve, TellsItsAddressAndEndsOnTerm) {
  ProgramInput input;
  input.on_output = [](pid_t pid) { ::kill(pid, SIGTERM); };
  const ProgramResult result = run_program(serve(0), input);
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.out, StartsWith("serving m at http://127.0.0.1:"));
  EXPECT_EQ(result.out.find(":0\n"), std::string::npos);
}

TEST(Serve, RefusesWrongOptions) {
  const auto expect_refused = [](const std::vector<std::string>& options, const std::string& why) {
    const ProgramResult result = run_program(serve(0, options));
    EXPECT_EQ(result.exit_code, 2) << options.at(1);
    EXPECT_EQ(result.out, "") << options.at(1);
    EXPECT_THAT(result.last_error_line(), HasSubstr(why));
  };
  expect_refused({"--host", ""}, "use 127.0.0.1");
  expect_refused({"--host", "*"}, "use 127.0.0.1");
}

TEST(Serve, EndsStreamsProperlyOnTerm) {
  const uint16_t port = free_port();
  std::vector<std::string> finished;
  std::vector<std::string> cut;
  ProgramInput input;
  input.on_output = [&](pid_t pid) {
    server::TestClient first(port);
    server::TestClient second(port);
    first.open_stream("/v1/completions", long_answer(5));
    second.open_stream("/v1/completions", long_answer(100'000));
    second.next_event();
    ::kill(pid, SIGTERM);
    finished = first.all_events();
    cut = second.all_events();
  };
  const ProgramResult result = run_program(serve(port, {"--grace-seconds", "3"}), input);
  EXPECT_EQ(result.exit_code, 0) << result.error;
  ASSERT_GE(finished.size(), 2U);
  EXPECT_EQ(finished.back(), "[DONE]");
  EXPECT_EQ(json::parse(finished[finished.size() - 2])["usage"]["completion_tokens"], 5);
  ASSERT_GE(cut.size(), 2U);
  EXPECT_EQ(cut.back(), "[DONE]");
}

TEST(Serve, EndsAtOnceOnASecondSignal) {
  const uint16_t port = free_port();
  ProgramInput input;
  input.on_output = [&](pid_t pid) {
    server::TestClient client(port);
    client.open_stream("/v1/completions", long_answer(100'000));
    client.next_event();
    ::kill(pid, SIGTERM);
    try {
      while (true) {
        server::TestClient probe(port);  // refused once the first signal has been taken
        probe.get("/health");
      }
    } catch (const std::exception&) {
    }
    ::kill(pid, SIGTERM);
  };
  const ProgramResult result = run_program(serve(port), input);
  EXPECT_EQ(result.exit_code, 143) << result.error;
}

TEST(Serve, NamesWhatIsWrongWithTheCall) {
  EXPECT_EQ(run_program(serve(0, {"--host", "no such host"})).exit_code, 2);
  EXPECT_EQ(run_program({"serve", "--model", kModel, "--log-level", "loud"}).exit_code, 2);
  EXPECT_EQ(run_program(serve(0, {"--max-body", "0"})).exit_code, 2);
  EXPECT_EQ(run_program({"serve", "--model", kModel, "--port", "65536"}).exit_code, 2);
  const ProgramResult keys = run_program(serve(0, {"--api-key-file", "/nonexistent"}));
  EXPECT_EQ(keys.exit_code, 1);
  EXPECT_THAT(keys.last_error_line(), HasSubstr("/nonexistent"));
}

TEST(Serve, NamesATakenPort) {
  boost::asio::io_context io;
  const server::Tcp::acceptor acceptor(io, {boost::asio::ip::make_address("127.0.0.1"), 0});
  const uint16_t port = acceptor.local_endpoint().port();
  const ProgramResult result = run_program(serve(port));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.last_error_line(), HasSubstr(std::to_string(port)));
}

}  // namespace
}  // namespace anyslot::cli
