// Stop strings over token borders, on a random model whose tokens are single bytes and short
// strings.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <random>

#include "support/engine_support.h"
#include "support/random_model.h"
#include "text/test_tokenizer.h"

namespace anyslot {
namespace {

using namespace testing_support;
using testing::HasSubstr;
using testing_text::add_merge;
using testing_text::byte_tokenizer;

using Strings = std::vector<std::string>;

constexpr int kVocabSize = 300;

/// Tokens of the answers: bytes of "a", "b", "é" and "日", and strings that end inside characters.
struct Alphabet {
  nlohmann::json tokenizer = byte_tokenizer();
  std::vector<int32_t> ids{'a', 'b', 0xC3, 0xA9, 0xE6, 0x97, 0xA5};

  Alphabet() {
    add("a", "b");
    add("b", "\xC3");
    add("\xA9", "a");
    add("a", "\xE6");
    add("\x97", "\xA5");
    add("\xA9", "b");
  }

 private:
  void add(std::string_view left, std::string_view right) {
    ids.push_back(static_cast<int32_t>(tokenizer["model"]["vocab"].size()));
    add_merge(tokenizer, written(left), written(right));
  }
  static std::string written(std::string_view bytes) {
    std::string name;
    for (const char byte : bytes)
      append_code_point(name, byte_to_alphabet(static_cast<uint8_t>(byte)));
    return name;
  }
};

class StopStringsTest : public testing::Test {
 protected:
  StopStringsTest() : model_(RandomModel{.vocab_size = kVocabSize}) {
    std::ofstream(model_.path() + "/tokenizer.json") << alphabet_.tokenizer.dump();
    engine_.emplace(open_engine(float32_config(model_.path())));
  }

  /// A random answer over the alphabet.
  Request make_request(uint64_t seed) const {
    Request request;
    request.segments = {document_segment(random_tokens(20, 1)), text_segment({5, 6, 7})};
    request.sampling.temperature = 1;
    request.sampling.seed = seed;
    request.sampling.max_tokens = 60;
    for (int32_t id = 0; id < kVocabSize; ++id) request.sampling.logit_bias[id] = -100;
    for (const int32_t id : alphabet_.ids) request.sampling.logit_bias[id] = 100;
    return request;
  }

  std::string text_of(const std::vector<int32_t>& ids) const { return engine_->detokenize(ids); }

  Alphabet alphabet_;
  TemporaryModel model_;
  std::optional<Engine> engine_;
};

/// What is left of an answer that ends with the first stop string to be complete.
struct Cut {
  size_t num_tokens = 0;
  std::string text;
  std::optional<std::string> stop;
};

// Tried byte by byte; `stops` hold no U+FFFD. Those that end within the first min_tokens tokens do
// not count.
Cut cut_at_stop(const Engine& engine, const Answer& whole, const Strings& stops, bool include_stop,
                int min_tokens) {
  const auto text_of_first = [&](size_t count) {
    return engine.detokenize(
        {whole.token_ids.begin(), whole.token_ids.begin() + static_cast<std::ptrdiff_t>(count)});
  };
  const std::string& text = whole.text;
  const std::string skipped = text_of_first(static_cast<size_t>(min_tokens));
  const auto first_difference =
      std::mismatch(text.begin(), text.end(), skipped.begin(), skipped.end()).first;
  for (auto end = static_cast<size_t>(first_difference - text.begin()) + 1; end <= text.size();
       ++end) {
    const std::string head = text.substr(0, end);
    Cut cut;
    for (const std::string& stop : stops) {
      if (head.ends_with(stop) && (!cut.stop || stop.size() > cut.stop->size())) cut.stop = stop;
    }
    if (!cut.stop) continue;
    while (!text_of_first(cut.num_tokens).starts_with(head)) ++cut.num_tokens;
    cut.text = include_stop ? head : head.substr(0, end - cut.stop->size());
    return cut;
  }
  return {whole.token_ids.size(), text, std::nullopt};
}

void expect_cut(const Answer& answer, const Answer& whole, const Cut& cut) {
  EXPECT_EQ(answer.text, cut.text);
  EXPECT_EQ(
      answer.token_ids,
      std::vector<int32_t>(whole.token_ids.begin(),
                           whole.token_ids.begin() + static_cast<std::ptrdiff_t>(cut.num_tokens)));
  EXPECT_EQ(answer.usage.completion_tokens, static_cast<int64_t>(cut.num_tokens));
  EXPECT_EQ(answer.finish_reason, cut.stop ? FinishReason::kStop : FinishReason::kLength);
  if (cut.stop) {
    EXPECT_EQ(answer.stop_reason, StopReason(*cut.stop));
  } else {
    EXPECT_FALSE(answer.stop_reason);
  }
}

TEST_F(StopStringsTest, EndTheAnswerWhereTheyAreCompleteInWhateverTokens) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const Strings characters{"a", "b", "é", "日"};
  int stopped = 0;
  for (int trial = 0; trial < 60; ++trial) {
    Request request = make_request(random());
    const Answer whole = run(*engine_, request);
    ASSERT_EQ(whole.text, engine_->detokenize(whole.token_ids));
    for (uint64_t count = 1 + random() % 3; count > 0; --count) {
      std::string stop;
      for (uint64_t length = 1 + random() % 4; length > 0; --length)
        stop += characters[random() % 4];
      request.sampling.stop.push_back(stop);
    }
    request.sampling.include_stop_in_output = random() % 2 == 0;
    request.sampling.min_tokens = random() % 2 == 0 ? 0 : static_cast<int>(random() % 30);
    SCOPED_TRACE(testing::PrintToString(request.sampling.stop) + " in " + whole.text);
    const Cut cut =
        cut_at_stop(*engine_, whole, request.sampling.stop, request.sampling.include_stop_in_output,
                    request.sampling.min_tokens);
    expect_cut(run(*engine_, request), whole, cut);
    stopped += cut.stop ? 1 : 0;
  }
  EXPECT_GT(stopped, 10);
  expect_idle(*engine_);
}

TEST_F(StopStringsTest, WhatWasHeldBackComesWhenTheAnswerEndsOtherwise) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Request request = make_request(seed);
    const Answer whole = run(*engine_, request);
    // Characters before the last; an answer may also end inside one.
    const size_t end = whole.text.find_last_of("ab") + 1;
    ASSERT_GT(end, 2U);
    size_t begin = end - 1;
    while (begin > 0 && (whole.text[begin] & 0xC0) == 0x80) --begin;
    request.sampling.stop = {whole.text.substr(begin) + "never"};
    if (find_invalid_utf8(request.sampling.stop[0])) continue;
    const Answer answer = run(*engine_, request);
    EXPECT_EQ(answer.text, whole.text);
    EXPECT_EQ(answer.finish_reason, FinishReason::kLength);
  }
}

TEST_F(StopStringsTest, NoEventShowsWhatIsTakenBackLater) {
  Request request = make_request(3);
  const Answer whole = run(*engine_, request);
  const size_t at = whole.text.find("ab", 4);
  ASSERT_NE(at, std::string::npos);
  request.sampling.stop = {"ab"};
  const Cut cut = cut_at_stop(*engine_, whole, request.sampling.stop, false, 0);
  Stream stream = submit(*engine_, request);
  std::string shown;
  for (;;) {
    const Event event = stream.next();
    shown += event.text;
    EXPECT_TRUE(cut.text.starts_with(shown)) << shown;
    EXPECT_EQ(find_invalid_utf8(event.text), std::nullopt);
    if (event.last) break;
  }
  EXPECT_EQ(shown, cut.text);
}

TEST_F(StopStringsTest, EachChoiceStopsForItself) {
  Request request = make_request(12);
  request.sampling.n = 4;
  Stream stream = submit(*engine_, request);
  const std::vector<Answer> whole = wait_for_choices(stream);
  request.sampling.stop = {"日a", "bé"};
  Stream stopping = submit(*engine_, request);
  const std::vector<Answer> answers = wait_for_choices(stopping);
  ASSERT_EQ(answers.size(), 4U);
  int64_t tokens = 0;
  for (size_t i = 0; i < answers.size(); ++i) {
    const Cut cut = cut_at_stop(*engine_, whole[i], request.sampling.stop, false, 0);
    EXPECT_EQ(answers[i].text, cut.text) << "choice " << i;
    EXPECT_EQ(answers[i].token_ids.size(), cut.num_tokens);
    tokens += static_cast<int64_t>(cut.num_tokens);
  }
  EXPECT_EQ(answers[0].usage.completion_tokens, tokens);
}

TEST_F(StopStringsTest, StopTokensAreShownOnDemandOnly) {
  Request request = make_request(5);
  const Answer whole = run(*engine_, request);
  const auto b = std::find(whole.token_ids.begin(), whole.token_ids.end(), 'b');
  ASSERT_NE(b, whole.token_ids.end());
  const std::string before = text_of({whole.token_ids.begin(), b});
  const std::string with = text_of({whole.token_ids.begin(), b + 1});
  request.sampling.stop_token_ids = {'b'};
  for (const Strings& stops : {Strings{}, Strings{"never"}}) {  // text of either thread
    request.sampling.stop = stops;
    request.sampling.include_stop_in_output = false;
    const Answer hidden = run(*engine_, request);
    EXPECT_EQ(hidden.text, before);
    EXPECT_EQ(hidden.token_ids.back(), 'b');
    EXPECT_EQ(hidden.stop_reason, StopReason(int32_t{'b'}));
    request.sampling.include_stop_in_output = true;
    EXPECT_EQ(run(*engine_, request).text, with);
  }
}

TEST_F(StopStringsTest, RefusesStringsThatCannotBeFound) {
  const std::pair<Strings, const char*> cases[] = {
      {{"ok", ""}, "stop string 1 is empty"},
      {{"a\xFF"}, "stop string 0 is not UTF-8: invalid at byte 2"},
      {{std::string(1025, 'a')}, "stop string 0 has 1025 bytes; at most 1024 are allowed"},
      {Strings(65, "a"), "there are 65 stop strings; at most 64 are allowed"}};
  for (const auto& [stops, message] : cases) {
    Request request = make_request(1);
    request.sampling.stop = stops;
    const auto stream = engine_->submit(request);
    ASSERT_FALSE(stream.ok()) << message;
    EXPECT_THAT(stream.status().message(), HasSubstr(message));
  }
}

TEST_F(StopStringsTest, TokenBytesAreThoseOfTheTokenizer) {
  EXPECT_EQ(engine_->token_bytes('a'), "a");
  EXPECT_EQ(engine_->token_bytes(0xC3), "\xC3");
  EXPECT_EQ(engine_->token_bytes(kVocabSize - 1), "");
}

}  // namespace
}  // namespace anyslot
