// Sampling parameters as the engine's users meet them, on a random model without tokenizer.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <set>

#include "support/engine_support.h"
#include "support/random_model.h"

namespace anyslot {
namespace {

using namespace testing_support;
using testing::HasSubstr;

constexpr int kVocabSize = 128;
constexpr int64_t kBlockBytes = 2 * 2 * 2 * 16 * 16 * 4;

class SamplingTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { model_ = new TemporaryModel(RandomModel{}); }
  static void TearDownTestSuite() {
    delete model_;
    model_ = nullptr;
  }

  static Engine open(int64_t kv_blocks = 2000) {
    EngineConfig config = float32_config(model_->path());
    config.kv_cache_bytes = kv_blocks * kBlockBytes;
    return open_engine(config);
  }

  static Request make_request(uint64_t question = 1) {
    Request request;
    request.segments = {document_segment(random_tokens(40, 101)),
                        document_segment(random_tokens(25, 102)),
                        text_segment(random_tokens(35, question))};
    request.sampling.max_tokens = 20;
    return request;
  }

  static TemporaryModel* model_;
};

TemporaryModel* SamplingTest::model_ = nullptr;

std::vector<Answer> run_choices(Engine& engine, const Request& request) {
  Stream stream = submit(engine, request);
  return wait_for_choices(stream);
}

TEST_F(SamplingTest, ChoicesDifferAndTheFirstIsThatOfASingleOne) {
  Engine engine = open();
  Request request = make_request();
  request.sampling.temperature = 1.2F;
  request.sampling.seed = 9;
  Engine other = open();
  const Answer single = run(other, request);
  request.sampling.n = 4;
  const std::vector<Answer> answers = run_choices(engine, request);
  ASSERT_EQ(answers.size(), 4U);
  EXPECT_EQ(answers[0].token_ids, single.token_ids);
  std::set<std::vector<int32_t>> distinct;
  for (const Answer& answer : answers) {
    EXPECT_EQ(answer.finish_reason, FinishReason::kLength);
    EXPECT_EQ(answer.token_ids.size(), 20U);
    distinct.insert(answer.token_ids);
  }
  EXPECT_EQ(distinct.size(), 4U);
  const std::vector<Answer> again = run_choices(engine, request);
  for (size_t i = 0; i < answers.size(); ++i)
    EXPECT_EQ(again[i].token_ids, answers[i].token_ids) << "choice " << i;
  expect_idle(engine);
}

TEST_F(SamplingTest, ChoicesCountThePromptOnceAndAllTokens) {
  Engine engine = open();
  Request request = make_request();
  request.sampling.n = 3;
  const Usage cold = run_choices(engine, request).front().usage;
  EXPECT_EQ(cold.prompt_tokens, 100);
  EXPECT_EQ(cold.completion_tokens, 60);
  EXPECT_EQ(cold.cached_tokens, 0);
  ASSERT_EQ(cold.documents.size(), 2U);
  EXPECT_EQ(cold.documents[1].source, DocumentSource::kComputed);
  EXPECT_EQ(engine.stats().document_entries, 2);
  EXPECT_EQ(engine.stats().prompt_tokens_total, 100);
  EXPECT_EQ(engine.stats().cached_tokens_total, 0);
  EXPECT_EQ(engine.stats().generated_tokens_total, 60);
  const Usage warm = run_choices(engine, request).front().usage;
  EXPECT_EQ(warm.cached_tokens, 65 + 32);
  EXPECT_EQ(engine.stats().cached_tokens_total, 65 + 32);
}

// Greedy choices are equal, which shows that each reads the same documents, whatever the method.
TEST_F(SamplingTest, GreedyChoicesAreEqual) {
  for (const Method method : kAllMethods) {
    SCOPED_TRACE(method_name(method));
    Engine engine = open();
    Request request = make_request();
    request.method = method;
    request.sampling.n = 3;
    const std::vector<Answer> answers = run_choices(engine, request);
    ASSERT_EQ(answers.size(), 3U);
    EXPECT_EQ(answers[1].token_ids, answers[0].token_ids);
    EXPECT_EQ(answers[2].token_ids, answers[0].token_ids);
    expect_idle(engine);
  }
}

TEST_F(SamplingTest, CancellingEndsAllChoices) {
  Engine engine = open();
  for (const int events_before : {0, 1, 7, 40}) {
    Request request = make_request();
    request.sampling.n = 5;
    request.sampling.max_tokens = 3000;
    Stream stream = submit(engine, request);
    for (int i = 0; i < events_before; ++i) EXPECT_FALSE(stream.next().finish_reason);
    stream.cancel();
    const std::vector<Answer> answers = wait_for_choices(stream);
    ASSERT_EQ(answers.size(), 5U);
    for (const Answer& answer : answers) EXPECT_EQ(answer.finish_reason, FinishReason::kCancelled);
    expect_idle(engine);
  }
  EXPECT_EQ(run(engine, make_request()).token_ids.size(), 20U);
}

// Every parameter that looks at more than the newest logits, in a pool that preempts all the time.
TEST_F(SamplingTest, AnswersDoNotDependOnPreemptionOrCompany) {
  const auto make_long = [](uint64_t i) {
    Request request = make_request(50 + i);
    request.sampling.max_tokens = 90;
    request.sampling.temperature = i % 3 == 0 ? 0.0F : 1.1F;
    request.sampling.seed = i;
    request.sampling.top_p = 0.9F;
    request.sampling.min_p = 0.01F;
    request.sampling.repetition_penalty = 1.3F;
    request.sampling.presence_penalty = 0.5F;
    request.sampling.frequency_penalty = 0.2F;
    request.sampling.logit_bias = {{static_cast<int32_t>(3 + i), 2.0F}};
    request.sampling.min_tokens = 30;
    request.sampling.stop_token_ids = random_tokens(3, i);
    request.sampling.logprobs = true;
    request.sampling.n = 1 + static_cast<int>(i % 3);
    return request;
  };
  Engine roomy = open();
  Engine tight = open(26);
  std::vector<std::vector<Answer>> expected;
  for (uint64_t i = 0; i < 8; ++i) expected.push_back(run_choices(roomy, make_long(i)));
  std::vector<Stream> streams;
  for (uint64_t i = 0; i < 8; ++i) streams.push_back(submit(tight, make_long(i)));
  for (size_t i = 0; i < streams.size(); ++i) {
    const std::vector<Answer> answers = wait_for_choices(streams[i]);
    ASSERT_EQ(answers.size(), expected[i].size());
    for (size_t choice = 0; choice < answers.size(); ++choice) {
      SCOPED_TRACE(testing::Message() << "request " << i << " choice " << choice);
      EXPECT_EQ(answers[choice].token_ids, expected[i][choice].token_ids);
      EXPECT_EQ(answers[choice].logprobs.size(), answers[choice].token_ids.size());
    }
  }
  EXPECT_GT(tight.stats().preemptions_total, 0);
  expect_idle(tight);
}

TEST_F(SamplingTest, MinTokensPutsOffStopTokensButNotTheFirstOneAfterIt) {
  Engine engine = open();
  Request request = make_request();
  std::vector<int32_t> all_but_one(kVocabSize - 1);
  for (size_t i = 0; i < all_but_one.size(); ++i) all_but_one[i] = static_cast<int32_t>(i);
  request.sampling.stop_token_ids = all_but_one;
  EXPECT_EQ(run(engine, request).token_ids.size(), 1U);
  request.sampling.min_tokens = 12;
  request.sampling.logit_bias = {{kVocabSize - 1, -100.0F}};
  const Answer answer = run(engine, request);
  EXPECT_EQ(answer.finish_reason, FinishReason::kStop);
  ASSERT_EQ(answer.token_ids.size(), 13U);
  EXPECT_EQ(std::count(answer.token_ids.begin(), answer.token_ids.end(), kVocabSize - 1), 12);
  EXPECT_EQ(answer.stop_reason, StopReason(answer.token_ids.back()));
}

TEST_F(SamplingTest, PenaltiesReduceRepetition) {
  Engine engine = open();
  const auto distinct_tokens = [&engine](const std::function<void(SamplingParams&)>& change) {
    size_t distinct = 0;
    for (uint64_t question = 1; question <= 5; ++question) {
      Request request = make_request(question);
      request.sampling.max_tokens = 60;
      change(request.sampling);
      const Answer answer = run(engine, request);
      distinct += std::set<int32_t>(answer.token_ids.begin(), answer.token_ids.end()).size();
    }
    return distinct;
  };
  const size_t plain = distinct_tokens([](SamplingParams&) {});
  EXPECT_LT(plain, 280U) << "the model must repeat itself for this test to say anything";
  EXPECT_GT(distinct_tokens([](SamplingParams& s) { s.repetition_penalty = 1.5F; }), plain);
  EXPECT_GT(distinct_tokens([](SamplingParams& s) { s.presence_penalty = 2.0F; }), plain);
  EXPECT_GT(distinct_tokens([](SamplingParams& s) { s.frequency_penalty = 2.0F; }), plain);
  EXPECT_LT(distinct_tokens([](SamplingParams& s) { s.frequency_penalty = -2.0F; }), plain);
}

TEST_F(SamplingTest, BiasForcesAndForbids) {
  Engine engine = open();
  Request request = make_request();
  const Answer plain = run(engine, request);
  request.sampling.logit_bias = {{77, 100.0F}};
  EXPECT_EQ(run(engine, request).token_ids, std::vector<int32_t>(20, 77));
  request.sampling.logit_bias.clear();
  for (const int32_t token : plain.token_ids) request.sampling.logit_bias[token] = -100.0F;
  for (const int32_t token : run(engine, request).token_ids) {
    EXPECT_EQ(std::count(plain.token_ids.begin(), plain.token_ids.end(), token), 0);
  }
}

// The engine's logits of the last prompt token give the log-probabilities of the first answer
// token; prompt and answer together as a prompt give those of the others.
TEST_F(SamplingTest, LogprobsAreThoseOfTheRawLogits) {
  Engine engine = open();
  Request request = make_request();
  request.sampling.temperature = 1.7F;
  request.sampling.top_k = 12;
  request.sampling.repetition_penalty = 1.4F;
  request.sampling.logit_bias = {{9, 5.0F}};
  request.sampling.logprobs = true;
  request.sampling.top_logprobs = 20;
  const Answer answer = run(engine, request);
  ASSERT_EQ(answer.logprobs.size(), answer.token_ids.size());

  Request forced = make_request();
  std::vector<int32_t>& text = forced.segments.back().token_ids;
  const size_t question_size = text.size();
  text.insert(text.end(), answer.token_ids.begin(), answer.token_ids.end());
  forced.prompt_logits = true;
  forced.sampling.max_tokens = 1;
  const std::vector<float> logits = run(engine, forced).prompt_logits;
  ASSERT_EQ(logits.size(), text.size() * kVocabSize);
  for (size_t i = 0; i < answer.token_ids.size(); ++i) {
    const TokenLogprobs& given = answer.logprobs[i];
    const float* row = logits.data() + (question_size - 1 + i) * kVocabSize;
    double sum = 0;
    for (int id = 0; id < kVocabSize; ++id) sum += std::exp(double{row[id]});
    EXPECT_EQ(given.chosen.token_id, answer.token_ids[i]);
    EXPECT_NEAR(given.chosen.logprob, row[answer.token_ids[i]] - std::log(sum), 1e-4);
    ASSERT_EQ(given.top.size(), 20U);
    for (size_t place = 0; place < given.top.size(); ++place) {
      const TokenLogprob& top = given.top[place];
      EXPECT_NEAR(top.logprob, row[top.token_id] - std::log(sum), 1e-4);
      if (place > 0) {
        EXPECT_LE(top.logprob, given.top[place - 1].logprob);
      }
    }
  }
}

TEST_F(SamplingTest, LogprobsComeOnlyWhenAskedFor) {
  Engine engine = open();
  Request request = make_request();
  EXPECT_TRUE(run(engine, request).logprobs.empty());
  request.sampling.logprobs = true;
  const Answer answer = run(engine, request);
  ASSERT_EQ(answer.logprobs.size(), 20U);
  EXPECT_TRUE(answer.logprobs[0].top.empty());
  EXPECT_LE(answer.logprobs[0].chosen.logprob, 0);
}

TEST_F(SamplingTest, PromptLogitsComeOnceWhateverTheNumberOfChoices) {
  Engine engine = open();
  Request request = make_request();
  request.prompt_logits = true;
  request.sampling.n = 3;
  const std::vector<Answer> answers = run_choices(engine, request);
  EXPECT_EQ(answers[0].prompt_logits.size(), size_t{35} * kVocabSize);
  EXPECT_TRUE(answers[1].prompt_logits.empty());
  EXPECT_TRUE(answers[2].prompt_logits.empty());
}

TEST_F(SamplingTest, RefusesValuesOutOfRangeBeforeAnyWork) {
  Engine engine = open();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  using Change = std::function<void(SamplingParams&)>;
  const std::pair<Change, const char*> cases[] = {
      {[&](auto& s) { s.temperature = nan; }, "temperature is nan; it must be between 0 and 100"},
      {[](auto& s) { s.temperature = 101; }, "temperature is 101"},
      {[&](auto& s) { s.top_p = nan; }, "top_p is nan; it must be above 0 and at most 1"},
      {[](auto& s) { s.min_p = 1.5F; }, "min_p is 1.5; it must be between 0 and 1"},
      {[](auto& s) { s.repetition_penalty = 0; },
       "repetition_penalty is 0; it must be between 0.01"},
      {[](auto& s) { s.presence_penalty = 2.5F; },
       "presence_penalty is 2.5; it must be between -2 and 2"},
      {[](auto& s) { s.frequency_penalty = -3; }, "frequency_penalty is -3"},
      {[](auto& s) {
         s.logit_bias = {{128, 1.0F}};
       },
       "logit_bias: token id 128 is not in the vocabulary of 128"},
      {[](auto& s) {
         s.logit_bias = {{5, 101.0F}};
       },
       "logit_bias of token 5 is 101; it must be between -100 and 100"},
      {[](auto& s) {
         for (int32_t id = 0; id < 1025; ++id) s.logit_bias[id] = 1;
       },
       "logit_bias has 1025 entries; at most 1024 are allowed"},
      {[](auto& s) { s.n = 0; }, "n is 0; it must be between 1 and 128"},
      {[](auto& s) { s.n = 129; }, "n is 129"},
      {[](auto& s) { s.min_tokens = 21; },
       "min_tokens is 21; it must be between 0 and max_tokens, 20"},
      {[](auto& s) { s.min_tokens = -1; }, "min_tokens is -1"},
      {[](auto& s) { s.stop_token_ids = {-1}; }, "stop_token_ids: token id -1"},
      {[](auto& s) {
         s.min_tokens = 1;
         for (int32_t id = 0; id < kVocabSize; ++id) s.stop_token_ids.push_back(id);
       },
       "every token of the vocabulary is a stop token"},
      {[](auto& s) { s.stop = {"x"}; }, "stop strings need the text of the answer"},
      {[](auto& s) { s.top_logprobs = 2; }, "top_logprobs is 2, but logprobs is off"},
      {[](auto& s) {
         s.logprobs = true;
         s.top_logprobs = 21;
       },
       "top_logprobs is 21; it must be between 0 and 20"},
  };
  for (const auto& [change, message] : cases) {
    SCOPED_TRACE(message);
    Request request = make_request();
    change(request.sampling);
    const auto stream = engine.submit(request);
    ASSERT_FALSE(stream.ok());
    EXPECT_THAT(stream.status().message(), HasSubstr(message));
  }
  EXPECT_EQ(engine.stats().steps_total, 0);
}

}  // namespace
}  // namespace anyslot
