// The end of the program under load.
#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include "cli/test_program.h"
#include "soak/crowd.h"
#include "soak/scale.h"

namespace anyslot::soak {
namespace {

using nlohmann::json;
using server::TestClient;

constexpr double kGraceSeconds = 3;
// For the step that is under way and the exit; a sanitizer makes both slow, and looks for leaks.
constexpr double kMarginSeconds = ANYSLOT_SANITIZED == 0 ? 1 : 30;

class TermSoak : public testing::TestWithParam<Scale> {};

INSTANTIATE_TEST_SUITE_P(Short, TermSoak, testing::Values(kShort),
                         [](const auto&) { return std::string("short"); });
INSTANTIATE_TEST_SUITE_P(Long, TermSoak, testing::Values(kLong),
                         [](const auto&) { return std::string("long"); });

uint16_t free_port() {
  boost::asio::io_context io;
  const server::Tcp::acceptor acceptor(io, {boost::asio::ip::make_address("127.0.0.1"), 0});
  return acceptor.local_endpoint().port();
}

struct Ends {
  std::atomic<int> streaming = 0;
  std::atomic<int> whole = 0;    // streams with all their tokens
  std::atomic<int> cut = 0;      // that said that the server shuts down
  std::atomic<int> refused = 0;  // with 503, or not taken any more
  std::atomic<int> broken = 0;
};

/// Streams one answer; its end must be a proper one.
void stream(uint16_t port, int tokens, Ends& ends) {
  bool has_head = false;
  try {
    TestClient client(port);
    const auto head = client.open_stream("/v1/completions", {{"model", "m"},
                                                             {"documents", {Library::document(1)}},
                                                             {"prompt", "The river"},
                                                             {"max_tokens", tokens},
                                                             {"ignore_eos", true},
                                                             {"stream", true}});
    has_head = true;
    ++ends.streaming;
    if (head.status == 503) {
      ++ends.refused;
      return;
    }
    const std::vector<std::string> events = client.all_events();
    if (head.status != 200 || events.size() < 2 || events.back() != "[DONE]") {
      ++ends.broken;
      return;
    }
    const json last = json::parse(events[events.size() - 2]);
    const bool is_cut = last.contains("error") && last["error"]["code"] == "shutting_down";
    const bool is_whole = !is_cut && last["usage"]["completion_tokens"] == tokens;
    ++(is_cut ? ends.cut : is_whole ? ends.whole : ends.broken);
  } catch (const std::exception&) {
    if (!has_head) ++ends.streaming;
    ++(has_head ? ends.broken : ends.refused);
  }
}

TEST_P(TermSoak, TermUnderLoadEndsWithinTheGraceTimeWithEveryStreamClosedProperly) {
  using Clock = std::chrono::steady_clock;
  const int clients = GetParam().clients;
  const uint16_t port = free_port();
  Ends ends;
  std::vector<std::thread> threads;
  Clock::time_point told;
  cli::ProgramInput input;
  input.on_output = [&](pid_t pid) {
    for (int c = 0; c < clients; ++c) {
      const int tokens = c % 2 == 0 ? 20 : 4000;  // the long ones outlast the grace time
      threads.emplace_back([&ends, port, tokens] { stream(port, tokens, ends); });
    }
    while (ends.streaming < clients / 2) std::this_thread::yield();
    told = Clock::now();
    ::kill(pid, SIGTERM);
  };
  const cli::ProgramResult result = cli::run_program(
      {"serve", "--model", ANYSLOT_MODEL_DIR, "--served-model-name", "m", "--kv-cache", "256MiB",
       "--port", std::to_string(port), "--grace-seconds", "3", "--log-level", "warning"},
      input);
  const double seconds = std::chrono::duration<double>(Clock::now() - told).count();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_LT(seconds, kGraceSeconds + kMarginSeconds);
  EXPECT_GT(seconds, kGraceSeconds * 0.7) << "the long ones have their time";
  EXPECT_EQ(ends.broken, 0);
  EXPECT_GT(ends.cut, 0);
  EXPECT_GE(ends.whole + ends.cut, clients / 2) << "those that had begun are not refused";
  EXPECT_EQ(ends.whole + ends.cut + ends.refused, clients);
  RecordProperty("clients", clients);
  RecordProperty("ended_whole", ends.whole.load());
  RecordProperty("ended_with_shutting_down", ends.cut.load());
  RecordProperty("refused_with_503", ends.refused.load());
  RecordProperty("seconds_from_term_to_exit", std::to_string(seconds));
}

}  // namespace
}  // namespace anyslot::soak
