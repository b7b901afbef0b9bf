#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "server/test_client.h"
#include "server/test_server.h"

namespace anyslot::soak {

/// A hundred documents of 1 to 4 sentences, about made-up towns.
class Library {
 public:
  static constexpr int kDocuments = 100;

  static nlohmann::json document(int index);
  static std::string town(int index);

  /// A question about one of 4 different documents, which are drawn by Zipf's law and stand in a
  /// random order. The answer is streamed with log-probabilities and has exactly `tokens` tokens.
  static nlohmann::json question(std::mt19937& random, int tokens);
};

struct Answer {
  std::string error;  // empty: a whole answer
  std::vector<std::string> tokens;
  // Of each token, where the question asks: the second best, and the lead of the best over it.
  std::vector<std::string> seconds;
  std::vector<double> leads;
};

/// Sends the question and reads its stream to the end.
Answer ask(server::TestClient& client, const nlohmann::json& question);

/// Questions, and what a server with nothing else to do answers to them.
struct Examination {
  std::vector<nlohmann::json> questions;
  std::vector<Answer> answers;
};

/// Asks different questions one after the other, in float32 and a pool that holds everything.
Examination examine(int questions, int tokens, uint32_t seed);

struct CrowdPlan {
  int clients = 0;
  int requests = 0;  // of all clients together
  /// Other clients that leave at random moments, and how often all of them do so together.
  int leaving_clients = 0;
  int aborts = 0;
  uint32_t seed = 0;
};

struct CrowdResult {
  int answered = 0;   // rightly
  int near_ties = 0;  // of these: other tokens after a place where the two best ones were level
  std::vector<std::string> failures;
  int64_t peak_running = 0;
  double seconds = 0;
};

/// Clients that ask all at once, each one question after the other. `progress` is told, now and
/// then, how many requests have been answered.
CrowdResult run_crowd(server::TestServer& server, const Examination& examination,
                      const CrowdPlan& plan, const std::function<void(int)>& progress);

}  // namespace anyslot::soak
