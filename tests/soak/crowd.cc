#include "soak/crowd.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>

namespace anyslot::soak {

using nlohmann::json;
using server::TestClient;
using server::TestServer;

namespace {

constexpr double kLevelLead = 1e-4;  // section 8 of docs/design.md
constexpr int kDocumentsOfQuestion = 4;
constexpr auto kWatchEvery = std::chrono::milliseconds(2);
constexpr size_t kFailuresToKeep = 10;

std::string letters(int index) {
  return {static_cast<char>('A' + index / 10), static_cast<char>('a' + index % 10)};
}

/// Of a token with log-probability.
std::string name_of(const json& token) {
  return token["token"].get<std::string>() + " " + token["bytes"].dump();
}

std::vector<int> four_by_zipf(std::mt19937& random) {
  std::vector<double> weights;
  for (int rank = 1; rank <= Library::kDocuments; ++rank) weights.push_back(1.0 / rank);
  std::discrete_distribution<int> zipf(weights.begin(), weights.end());
  std::vector<int> drawn;
  while (drawn.size() < kDocumentsOfQuestion) {
    const int index = zipf(random);
    if (std::ranges::find(drawn, index) == drawn.end()) drawn.push_back(index);
  }
  std::shuffle(drawn.begin(), drawn.end(), random);
  return drawn;
}

/// Whether an answer is right; a difference is excused where the two best tokens were level.
enum class Verdict { kRight, kNearTie, kWrong };

Verdict judge(const Answer& received, const Answer& expected) {
  if (!received.error.empty()) return Verdict::kWrong;
  if (received.tokens == expected.tokens) return Verdict::kRight;
  const auto at = static_cast<size_t>(std::ranges::mismatch(received.tokens, expected.tokens).in2 -
                                      expected.tokens.begin());
  const bool level = at < expected.leads.size() && expected.leads[at] <= kLevelLead;
  return level && received.tokens[at] == expected.seconds[at] ? Verdict::kNearTie : Verdict::kWrong;
}

class Crowd {
 public:
  Crowd(TestServer& server, const Examination& examination, const CrowdPlan& plan)
      : server_(server), examination_(examination), plan_(plan) {}

  CrowdResult run(const std::function<void(int)>& progress) {
    const auto start = std::chrono::steady_clock::now();
    std::vector<std::thread> threads;
    for (int c = 0; c < plan_.clients + plan_.leaving_clients; ++c) {
      const bool leaves = c >= plan_.clients;
      threads.emplace_back([this, c, leaves] {
        leaves ? leave_often(c) : ask_often(c);
        ++ended_;
      });
    }
    while (ended_ < plan_.clients + plan_.leaving_clients) {
      result_.peak_running =
          std::max(result_.peak_running, server_.engine().stats().running_requests);
      progress(done_);
      std::this_thread::sleep_for(kWatchEvery);
    }
    for (std::thread& thread : threads) thread.join();
    result_.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return std::move(result_);
  }

 private:
  std::mt19937 random_of(int client) const {
    std::seed_seq seeds{plan_.seed, static_cast<uint32_t>(client)};
    return std::mt19937(seeds);
  }

  void ask_often(int number) {
    std::mt19937 random = random_of(number);
    std::optional<TestClient> client;
    while (asked_++ < plan_.requests) {
      const size_t at = random() % examination_.questions.size();
      try {
        if (!client) client.emplace(server_.port());
        note(ask(*client, examination_.questions[at]), at);
      } catch (const std::exception& error) {
        note({error.what(), {}, {}, {}}, at);
        client.reset();
      }
      ++done_;
    }
  }

  void leave_often(int number) {
    std::mt19937 random = random_of(number);
    while (aborted_++ < plan_.aborts) {
      const json& question = examination_.questions[random() % examination_.questions.size()];
      try {
        leave_once(question, random);
      } catch (const std::exception& error) {
        fail(std::string("one who wanted to leave: ") + error.what());
      }
    }
  }

  /// In the middle of the request's bytes, before its answer, or after some of its events.
  void leave_once(const json& question, std::mt19937& random) {
    TestClient client = server_.connect();
    const std::string body = question.dump();
    const auto way = random() % 4;
    if (way == 0) {
      client.send(
          "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
          "application/json\r\nContent-Length: " +
          std::to_string(body.size()) + "\r\n\r\n" + body.substr(0, random() % body.size()));
      return;
    }
    client.send_request("POST", "/v1/chat/completions", body, {});
    if (way == 1) return;
    client.read_reply();
    for (auto events = random() % 16; events > 0 && client.next_event(); --events) {
    }
  }

  void note(const Answer& received, size_t at) {
    const Verdict verdict = judge(received, examination_.answers[at]);
    if (verdict == Verdict::kWrong) {
      return fail("seed " + std::to_string(plan_.seed) + ": " + examination_.questions[at].dump() +
                  " got " +
                  (received.error.empty() ? json(received.tokens).dump() : received.error) +
                  " for " + json(examination_.answers[at].tokens).dump());
    }
    const std::lock_guard lock(mutex_);
    ++result_.answered;
    result_.near_ties += verdict == Verdict::kNearTie ? 1 : 0;
  }

  void fail(std::string failure) {
    const std::lock_guard lock(mutex_);
    if (result_.failures.size() < kFailuresToKeep) result_.failures.push_back(std::move(failure));
  }

  TestServer& server_;
  const Examination& examination_;
  const CrowdPlan& plan_;
  std::atomic<int> asked_ = 0;
  std::atomic<int> done_ = 0;
  std::atomic<int> aborted_ = 0;
  std::atomic<int> ended_ = 0;  // clients
  std::mutex mutex_;
  CrowdResult result_;
};

}  // namespace

std::string Library::town(int index) { return "Town" + letters(index); }

json Library::document(int index) {
  const std::string name = town(index);
  std::string text = name + " is a city in Norway.";
  for (int river = 0; river <= index % 4; ++river) {
    text += " The river Masa" + letters(index * 4 + river) + " flows through it.";
  }
  return {{"id", name}, {"title", name}, {"text", text}};
}

json Library::question(std::mt19937& random, int tokens) {
  const std::vector<int> drawn = four_by_zipf(random);
  json documents = json::array();
  for (const int index : drawn) documents.push_back(document(index));
  const std::string asked = town(drawn[random() % drawn.size()]);
  return {
      {"model", "rag-demo-14m"},
      {"documents", documents},
      {"messages", {{{"role", "user"}, {"content", "Which river flows through " + asked + "?"}}}},
      {"temperature", 0},
      {"max_tokens", tokens},
      {"ignore_eos", true},
      {"logprobs", true},
      {"top_logprobs", 2},
      {"stream", true}};
}

Answer ask(TestClient& client, const json& question) {
  const server::ClientReply head = client.open_stream("/v1/chat/completions", question);
  Answer answer;
  if (head.status != 200) {
    answer.error = "status " + std::to_string(head.status) + ": " + head.body;
    return answer;
  }
  bool done = false;
  for (const std::string& event : client.all_events()) {
    done = event == "[DONE]";
    if (done) break;
    const json chunk = json::parse(event);
    if (chunk.contains("error")) {
      answer.error = event;
      return answer;
    }
    const json& choice = chunk["choices"][0];
    if (!choice.contains("logprobs") || choice["logprobs"].is_null()) continue;
    for (const json& token : choice["logprobs"]["content"]) {
      answer.tokens.push_back(name_of(token));
      const json& best = token["top_logprobs"];
      answer.seconds.push_back(name_of(best[1]));
      answer.leads.push_back(best[0]["logprob"].get<double>() - best[1]["logprob"].get<double>());
    }
  }
  if (!done) {
    answer.error = "the stream ended without [DONE]";
  } else if (answer.tokens.size() != question["max_tokens"].get<size_t>()) {
    answer.error = std::to_string(answer.tokens.size()) + " tokens";
  }
  return answer;
}

Examination examine(int questions, int tokens, uint32_t seed) {
  TestServer server(server::bundled_config());
  TestClient client = server.connect();
  std::mt19937 random(seed);
  Examination examination;
  for (int i = 0; i < questions; ++i) {
    examination.questions.push_back(Library::question(random, tokens));
    examination.answers.push_back(ask(client, examination.questions.back()));
    if (!examination.answers.back().error.empty()) {
      throw std::runtime_error(examination.answers.back().error);
    }
  }
  return examination;
}

CrowdResult run_crowd(TestServer& server, const Examination& examination, const CrowdPlan& plan,
                      const std::function<void(int)>& progress) {
  return Crowd(server, examination, plan).run(progress);
}

}  // namespace anyslot::soak
