// Crowds of clients, which run in this process too, beside the server.
#include <gtest/gtest.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "server/test_server.h"
#include "soak/crowd.h"
#include "soak/scale.h"

namespace anyslot::soak {
namespace {

using nlohmann::json;
using server::TestClient;
using server::TestServer;

constexpr int kAnswerTokens = 24;

struct Memory {
  double live_mib = 0;      // allocated and not freed
  double resident_mib = 0;  // of the process
};

Memory memory_now() {
  const struct mallinfo2 heap = ::mallinfo2();
  int64_t size = 0;
  int64_t resident = 0;
  std::ifstream("/proc/self/statm") >> size >> resident;
  return {static_cast<double>(heap.uordblks + heap.hblkhd) / (1 << 20),
          static_cast<double>(resident) * static_cast<double>(::sysconf(_SC_PAGESIZE)) / (1 << 20)};
}

/// The least of three rounds.
double least(const std::vector<Memory>& rounds, size_t first, double Memory::*which) {
  return std::min({rounds[first].*which, rounds[first + 1].*which, rounds[first + 2].*which});
}

std::string text(double value) { return json(std::round(value * 100) / 100).dump(); }

class Soak : public testing::TestWithParam<Scale> {
 protected:
  static constexpr uint32_t kSeed = 20;

  static const Examination& examination() {
    static const Examination asked = [] {
      std::printf("  asking %d questions one after the other\n", GetParam().questions);
      return examine(GetParam().questions, kAnswerTokens, kSeed);
    }();
    return asked;
  }

  static void expect_right(const CrowdResult& result, int requests) {
    EXPECT_EQ(result.answered, requests);
    EXPECT_LE(result.near_ties, std::max(1, requests / 50)) << "such places are rare";
    for (const std::string& failure : result.failures) ADD_FAILURE() << failure;
  }

  static CrowdPlan plan(int requests) {
    CrowdPlan plan;
    plan.clients = GetParam().clients;
    plan.requests = requests;
    plan.seed = kSeed;
    return plan;
  }
};

INSTANTIATE_TEST_SUITE_P(Short, Soak, testing::Values(kShort),
                         [](const auto&) { return std::string("short"); });
INSTANTIATE_TEST_SUITE_P(Long, Soak, testing::Values(kLong),
                         [](const auto&) { return std::string("long"); });

TEST_P(Soak, ACrowdGetsTheAnswersOfOneAfterTheOtherInSteadyMemory) {
  const int requests = GetParam().requests;
  const int rounds = GetParam().rounds;
  const Examination& asked = examination();
  TestServer server(config_with_blocks(1000));
  Progress progress("requests", requests * rounds);
  std::vector<Memory> memory;
  int64_t peak = 0;
  int near_ties = 0;
  double seconds = 0;
  for (int round = 0; round < rounds; ++round) {
    CrowdPlan crowd = plan(requests);
    crowd.seed += static_cast<uint32_t>(round);
    const CrowdResult result =
        run_crowd(server, asked, crowd, [&](int done) { progress(round * requests + done); });
    expect_right(result, requests);
    server.expect_idle();
    memory.push_back(memory_now());
    peak = std::max(peak, result.peak_running);
    near_ties += result.near_ties;
    seconds += result.seconds;
  }
  EXPECT_GE(peak, 32);
  // Threads, arenas and the pool have come to their size after the first round. Buffers of
  // connections that are just being closed come and go.
  if (ANYSLOT_SANITIZED == 0) {  // whose memory grows for reasons of its own
    EXPECT_LT(least(memory, 7, &Memory::live_mib),
              least(memory, 1, &Memory::live_mib) + GetParam().growth_mib);
    EXPECT_LT(memory.back().resident_mib, memory[1].resident_mib * 1.1);
  }
  RecordProperty("requests", requests * rounds);
  RecordProperty("clients_at_once", GetParam().clients);
  RecordProperty("near_ties", near_ties);
  RecordProperty("peak_running", std::to_string(peak));
  RecordProperty("requests_per_second", text(requests * rounds / seconds));
  for (size_t round = 0; round < memory.size(); ++round) {
    RecordProperty("memory_after_round_" + std::to_string(round + 1),
                   text(memory[round].live_mib) + " MiB live, " + text(memory[round].resident_mib) +
                       " MiB resident");
  }
}

TEST_P(Soak, ATinyPoolGivesTheSameAnswers) {
  const int requests = GetParam().requests;
  const Examination& asked = examination();
  TestServer server(config_with_blocks(60));
  Progress progress("requests", requests);
  const CrowdResult result = run_crowd(server, asked, plan(requests), std::ref(progress));
  expect_right(result, requests);
  server.expect_idle();
  EXPECT_GT(server.metric("anyslot_preemptions_total"), 0);
  EXPECT_GT(server.metric("anyslot_evictions_total"), 0);
  RecordProperty("requests", requests);
  RecordProperty("near_ties", result.near_ties);
  RecordProperty("preemptions", text(server.metric("anyslot_preemptions_total")));
  RecordProperty("evictions", text(server.metric("anyslot_evictions_total")));
}

TEST_P(Soak, ThoseWhoLeaveHarmNobody) {
  const Examination& asked = examination();
  TestServer server(config_with_blocks(120));
  CrowdPlan crowd = plan(GetParam().aborts / 2);
  crowd.clients = 32;
  crowd.leaving_clients = 32;
  crowd.aborts = GetParam().aborts;
  Progress progress("requests", crowd.requests);
  const CrowdResult result = run_crowd(server, asked, crowd, std::ref(progress));
  expect_right(result, crowd.requests);
  server.expect_idle();
  const double noticed = server.metric("anyslot_requests_total{outcome=\"aborted\"}");
  EXPECT_GT(noticed, GetParam().aborts / 4) << "some leave before their request is whole";
  RecordProperty("aborts", GetParam().aborts);
  RecordProperty("aborts_of_whole_requests", text(noticed));
  RecordProperty("requests_beside_them", crowd.requests);
  RecordProperty("near_ties", result.near_ties);
}

TEST_P(Soak, PromptsThatNeverComeAgainFindNothing) {
  TestServer server(config_with_blocks(60));
  constexpr int kClients = 8;
  std::vector<std::thread> clients;
  std::vector<std::string> errors(kClients);
  for (int c = 0; c < kClients; ++c) {
    clients.emplace_back([&, c] {
      TestClient client = server.connect();
      for (int i = c; i < GetParam().unique_prompts; i += kClients) {
        const std::string name = "number " + std::to_string(1'000'000 + i) + " ";
        const auto reply = client.post("/v1/completions", {{"model", server.model()},
                                                           {"documents", {name + "is a document."}},
                                                           {"prompt", name + "is"},
                                                           {"max_tokens", 16},
                                                           {"ignore_eos", true}});
        if (reply.status != 200) errors[static_cast<size_t>(c)] = reply.body;
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(errors, std::vector<std::string>(kClients));
  const double hits = server.metric("anyslot_document_hit_tokens_total");
  const double misses = server.metric("anyslot_document_miss_tokens_total");
  EXPECT_GT(misses, GetParam().unique_prompts);
  EXPECT_LT(hits / (hits + misses), 0.01);
  server.expect_idle();
  RecordProperty("requests", GetParam().unique_prompts);
  RecordProperty("hit_ratio", text(hits / (hits + misses)));
}

}  // namespace
}  // namespace anyslot::soak
