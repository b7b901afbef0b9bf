// Runs the scenarios of tests/scenarios; their format is described there.

#include "support/scenario.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/block.h"
#include "support/engine_support.h"
#include "support/random_model.h"

namespace anyslot {
namespace {

using namespace testing_support;
using testing::HasSubstr;

constexpr int64_t kBlockBytes = 2 * 2 * 2 * 16 * 16 * 4;
constexpr int64_t kTicksPerSecond = 1000;
const std::string kFolder = ANYSLOT_SOURCE_DIR "/tests/scenarios";

enum class Setting { kAsWritten, kSmallBudget, kSmallestPool };

using Parameters = std::tuple<std::string, Method, Setting>;  // the file's stem

const TemporaryModel& model() {
  static const TemporaryModel model({});
  return model;
}

uint64_t seed_of(const std::string& name) {
  uint64_t seed = 1;
  for (const char c : name) seed = seed * 131 + static_cast<unsigned char>(c);
  return seed;
}

std::pair<std::string, std::string> split(const std::string& text, char at) {
  const size_t end = text.find(at);
  return {text.substr(0, end), end == std::string::npos ? "" : text.substr(end + 1)};
}

std::string with_blanks(std::string text) {
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

class ScenarioRun {
 public:
  ScenarioRun(Scenario scenario, Method method, Setting setting)
      : scenario_(std::move(scenario)),
        method_(method),
        setting_(setting),
        engine_(open(setting == Setting::kSmallestPool ? smallest_pool() : scenario_.pool_blocks)) {
    run_between_steps(engine_, [this](internal::StepLoop& loop) {
      loop.set_clock([this] { return ticks_.load(); });
    });
  }

  void run() {
    const std::vector<ScenarioCommand>& commands = scenario_.commands;
    for (size_t i = 0; i < commands.size(); ++i) {
      SCOPED_TRACE(testing::Message() << "line " << commands[i].line);
      if (commands[i].verb == "together") {
        const auto begin = commands.begin() + static_cast<std::ptrdiff_t>(i) + 1;
        const auto end = std::find_if(begin, commands.end(),
                                      [](const auto& command) { return command.verb == "end"; });
        ask_together({begin, end});
        i = static_cast<size_t>(end - commands.begin());
      } else {
        run_command(commands[i]);
      }
    }
    expect_idle(engine_);
  }

 private:
  Engine open(int64_t blocks) const {
    EngineConfig config = float32_config(model().path());
    config.method = method_;
    config.kv_cache_bytes = blocks * kBlockBytes;
    if (setting_ == Setting::kSmallBudget) {
      config.max_running_requests = 8;
      config.max_batch_tokens = 23;
    }
    return open_engine(config);
  }

  /// Blocks that the largest request needs.
  int64_t smallest_pool() const {
    int64_t largest = 0;
    for (const ScenarioCommand& command : scenario_.commands) {
      if (command.verb == "flood") {
        largest = std::max(largest, blocks_for({std::stoll(command.words[1])}, kFloodText + 1));
      }
      if (command.verb != "ask") continue;
      std::vector<int64_t> documents;
      int64_t text = answer_tokens(command);
      for (const std::string& name : command.words) {
        const auto document = scenario_.documents.find(name);
        if (document != scenario_.documents.end()) {
          documents.push_back(document->second);
        } else {
          text += text_tokens(name) + kBlockSize;  // each text begins in a block of its own
        }
      }
      largest = std::max(largest, blocks_for(documents, text));
    }
    return largest;
  }

  int64_t blocks_for(const std::vector<int64_t>& documents, int64_t text) const {
    int64_t blocks = anyslot::blocks_for(text);
    for (const int64_t tokens : documents) {
      blocks += anyslot::blocks_for(tokens) * (method_ == Method::kBlock ? 2 : 1);
    }
    return blocks;
  }

  static int answer_tokens(const ScenarioCommand& ask) {
    return std::stoi(ask.option("tokens", "4"));
  }

  int64_t text_tokens(const std::string& name) const {
    const auto text = scenario_.texts.find(name);
    if (text != scenario_.texts.end()) return text->second;
    for (const ScenarioCommand& command : scenario_.commands) {
      if (command.option("as") == name) return answer_tokens(command);
    }
    throw std::runtime_error("nothing is named " + name);
  }

  bool keeps_documents() const {
    return setting_ != Setting::kSmallestPool && method_ != Method::kPrefix &&
           method_ != Method::kFull;
  }

  Segment segment(const std::string& name, const ScenarioCommand& command) const {
    const auto document = scenario_.documents.find(name);
    if (document == scenario_.documents.end()) {
      const auto answer = answers_.find(name);
      if (answer != answers_.end()) return text_segment(answer->second);
      return text_segment(random_tokens(text_tokens(name), seed_of(name)));
    }
    Segment segment = document_segment(random_tokens(document->second, seed_of(name)));
    segment.id = name;
    if (!keeps_documents()) return segment;
    segment.pin = command.option("pin") == name;
    const auto [timed, seconds] = split(command.option("ttl"), ':');
    if (timed == name) segment.ttl_seconds = std::stoll(seconds);
    return segment;
  }

  Request request(const ScenarioCommand& ask) const {
    Request request;
    for (const std::string& name : ask.words) request.segments.push_back(segment(name, ask));
    request.cache_salt = ask.option("salt");
    request.sampling.max_tokens = answer_tokens(ask);
    return request;
  }

  /// The answer of an engine that was asked nothing before.
  const std::vector<int32_t>& untouched_answer(const Request& asked) {
    std::vector<int32_t> key{asked.sampling.max_tokens};
    for (const Segment& segment : asked.segments) {
      key.push_back(-1 - static_cast<int32_t>(segment.kind));
      key.insert(key.end(), segment.token_ids.begin(), segment.token_ids.end());
    }
    const auto known = untouched_.find(key);
    if (known != untouched_.end()) return known->second;
    Request plain = asked;
    for (Segment& segment : plain.segments) {
      segment.pin = false;
      segment.ttl_seconds.reset();
    }
    Engine engine = open(4000);
    return untouched_[key] = run_request(engine, plain);
  }

  static std::vector<int32_t> run_request(Engine& engine, const Request& request) {
    return testing_support::run(engine, request).token_ids;
  }

  void run_command(const ScenarioCommand& command) {
    if (command.verb == "ask") return ask(command);
    if (command.verb == "flood") return flood(command);
    if (command.verb == "wait") {
      ticks_ += std::stoll(command.words.at(0)) * kTicksPerSecond;
      return;
    }
    if (!keeps_documents()) return;
    if (command.verb == "register") return register_document(command);
    if (command.verb == "list") return list(command);
    change(command);
  }

  void ask(const ScenarioCommand& command) {
    if (command.has("fails")) {
      if (keeps_documents()) expect_failure(command);
      return;
    }
    for (int i = 0; i < command.repetitions; ++i) {
      const int64_t evictions = engine_.stats().evictions_total;
      const Request asked = request(command);
      const Answer answer = testing_support::run(engine_, asked);
      check_answer(command, asked, answer);
      if (i + 1 < command.repetitions) continue;
      check_expectations(command, answer, engine_.stats().evictions_total - evictions);
    }
  }

  void check_answer(const ScenarioCommand& command, const Request& asked, const Answer& answer) {
    ASSERT_EQ(answer.finish_reason, FinishReason::kLength) << answer.error;
    ASSERT_EQ(answer.token_ids, untouched_answer(asked));
    if (command.has("as")) answers_[command.option("as")] = answer.token_ids;
  }

  void ask_together(const std::vector<ScenarioCommand>& asks) {
    std::vector<Request> requests;
    std::vector<Stream> streams;
    for (const ScenarioCommand& command : asks) requests.push_back(request(command));
    // One call holds the engine thread until all are queued.
    run_between_steps(engine_, [&](internal::StepLoop&) {
      for (const Request& asked : requests) streams.push_back(submit(engine_, asked));
    });
    for (size_t i = 0; i < asks.size(); ++i) {
      SCOPED_TRACE(testing::Message() << "line " << asks[i].line);
      const Answer answer = wait_for(streams[i]);
      check_answer(asks[i], requests[i], answer);
      check_expectations(asks[i], answer, 0);
    }
  }

  void check_expectations(const ScenarioCommand& command, const Answer& answer, int64_t evictions) {
    if (setting_ == Setting::kSmallestPool) return;
    for (const ScenarioExpectation& expected : command.expectations) {
      if (std::ranges::find(expected.methods, method_) == expected.methods.end()) continue;
      int64_t text = answer.usage.cached_tokens;
      for (const DocumentUsage& document : answer.usage.documents) text -= document.cached_tokens;
      for (const auto& [name, value] : expected.values) {
        if (name == "text") {
          EXPECT_EQ(std::to_string(text), value) << "cached tokens of text";
        } else if (name == "evictions") {
          EXPECT_EQ(value == "some" && evictions > 0 ? "some" : std::to_string(evictions), value);
        } else {
          check_document(name, value, answer.usage);
        }
      }
    }
  }

  static void check_document(const std::string& name, const std::string& value,
                             const Usage& usage) {
    int found = 0;
    for (const DocumentUsage& document : usage.documents) {
      if (document.id != name) continue;
      ++found;
      const bool joined = document.source == DocumentSource::kJoined;
      EXPECT_EQ(joined ? "joined" : std::to_string(document.cached_tokens), value)
          << "document " << name;
    }
    EXPECT_GT(found, 0) << "no document " << name;
  }

  void expect_failure(const ScenarioCommand& command) {
    auto stream = engine_.submit(request(command));
    std::string error = stream.status().message();
    if (stream.ok()) error = wait_for(*stream).error;
    EXPECT_THAT(error, HasSubstr(with_blanks(command.option("fails"))));
  }

  void flood(const ScenarioCommand& command) {
    const int64_t tokens = std::stoll(command.words.at(1));
    for (int64_t left = std::stoll(command.words.at(0)); left > 0; --left) {
      Request request;
      request.segments = {document_segment(random_tokens(tokens, ++flood_seed_)),
                          text_segment(random_tokens(kFloodText, flood_seed_))};
      request.cache_salt = "flood";
      request.sampling.max_tokens = 1;
      ASSERT_EQ(testing_support::run(engine_, request).usage.cached_tokens, 0);
    }
  }

  void expect_status(const ScenarioCommand& command, const Status& status) {
    if (command.has("fails")) {
      EXPECT_THAT(status.message(), HasSubstr(with_blanks(command.option("fails"))));
    } else {
      EXPECT_TRUE(status.ok()) << status.message();
    }
  }

  void register_document(const ScenarioCommand& command) {
    ScenarioCommand plain = command;
    plain.options.erase("ttl");
    Segment document = segment(command.words.at(0), plain);
    document.pin = std::ranges::find(command.words, "pin") != command.words.end();
    if (command.has("ttl")) document.ttl_seconds = std::stoll(command.option("ttl"));
    const auto registered =
        engine_.register_document(document, {std::nullopt, command.option("salt")});
    expect_status(command, registered.status());
  }

  /// The key of a document under a salt; under another one if it was never seen there.
  std::string key_of(const std::string& name, const std::string& salt) {
    for (const ScenarioCommand& command : scenario_.commands) {
      for (const CachedDocument& document : list_documents(engine_, command.option("salt"))) {
        keys_[{document.id, command.option("salt")}] = document.key;
      }
    }
    const auto own = keys_.find({name, salt});
    if (own != keys_.end()) return own->second;
    const auto any = keys_.lower_bound({name, ""});
    return any != keys_.end() && any->first.first == name ? any->second : "never seen";
  }

  void change(const ScenarioCommand& command) {
    const std::string salt = command.option("salt");
    const std::string key = key_of(command.words.at(0), salt);
    if (command.verb == "pin") return expect_status(command, engine_.pin_document(key, salt));
    if (command.verb == "unpin") return expect_status(command, engine_.unpin_document(key, salt));
    expect_status(command, engine_.remove_document(key, salt));
  }

  void list(const ScenarioCommand& command) {
    std::vector<std::string> names;
    for (const CachedDocument& document : list_documents(engine_, command.option("salt"))) {
      names.push_back(document.id);
      EXPECT_EQ(document.tokens, scenario_.documents.at(document.id));
      EXPECT_FALSE(document.encoding);
    }
    EXPECT_EQ(names, command.words);
  }

  static constexpr int64_t kFloodText = 3;

  const Scenario scenario_;
  const Method method_;
  const Setting setting_;
  std::atomic<int64_t> ticks_ = 1;
  Engine engine_;
  std::map<std::string, std::vector<int32_t>> answers_;              // by their names
  std::map<std::vector<int32_t>, std::vector<int32_t>> untouched_;   // by prompt
  std::map<std::pair<std::string, std::string>, std::string> keys_;  // by name and salt
  uint64_t flood_seed_ = 1'000'000;
};

class ScenarioTest : public testing::TestWithParam<Parameters> {};

TEST_P(ScenarioTest, GivesWhatItSays) {
  const auto& [name, method, setting] = GetParam();
  ScenarioRun(read_scenario(kFolder + "/" + name + ".txt"), method, setting).run();
}

std::vector<std::string> scenario_names() {
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(kFolder)) {
    if (file.path().extension() == ".txt") names.push_back(file.path().stem().string());
  }
  std::ranges::sort(names);
  return names;
}

std::string test_name(const testing::TestParamInfo<Parameters>& info) {
  const auto& [name, method, setting] = info.param;
  const char* const settings[] = {"as_written", "small_budget", "smallest_pool"};
  return name + "_" + std::string(method_name(method)) + "_" +
         settings[static_cast<size_t>(setting)];
}

INSTANTIATE_TEST_SUITE_P(All, ScenarioTest,
                         testing::Combine(testing::ValuesIn(scenario_names()),
                                          testing::ValuesIn(kAllMethods),
                                          testing::Values(Setting::kAsWritten,
                                                          Setting::kSmallBudget,
                                                          Setting::kSmallestPool)),
                         test_name);

}  // namespace
}  // namespace anyslot
