// lazy, block and mepic give the same logits for any documents in any order; prefix gives full's.

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "support/engine_support.h"
#include "support/random_model.h"

namespace anyslot {
namespace {

using namespace testing_support;

constexpr double kTolerance = 1e-4;
using Documents = std::vector<std::vector<int32_t>>;

Engine open_random_model(const RandomModel& shape) {
  const TemporaryModel model(shape);  // an open engine does not need the files' names any more
  return open_engine(float32_config(model.path()));
}

class MethodsTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    RandomModel shape;
    shape.max_position_embeddings = 200000;
    engine_ = std::make_unique<Engine>(open_random_model(shape));
  }
  static void TearDownTestSuite() { engine_.reset(); }

  static Request make_request(const Documents& documents, const std::vector<int32_t>& question,
                              Method method) {
    Request request;
    for (const auto& document : documents) request.segments.push_back(document_segment(document));
    request.segments.push_back(text_segment(question));
    request.method = method;
    request.prompt_logits = true;
    request.sampling.max_tokens = 4;
    return request;
  }

  static Answer answer(const Documents& documents, const std::vector<int32_t>& question,
                       Method method, Engine& engine = *engine_) {
    Answer result = run(engine, make_request(documents, question, method));
    expect_idle(engine);
    return result;
  }

  static void expect_same_logits(const Documents& documents, const std::vector<int32_t>& question,
                                 Engine& engine = *engine_) {
    const Answer lazy = answer(documents, question, Method::kLazy, engine);
    ASSERT_EQ(lazy.prompt_logits.size(), question.size() * 128);
    for (const Method method : {Method::kBlock, Method::kMepic}) {
      const Answer other = answer(documents, question, method, engine);
      EXPECT_LT(relative_difference(other.prompt_logits, lazy.prompt_logits), kTolerance)
          << method_name(method);
      EXPECT_EQ(other.token_ids, lazy.token_ids) << method_name(method);
    }
  }

  static void expect_cold_equals_warm(Engine& engine) {
    const Documents documents{random_tokens(50, 71), random_tokens(18, 72), random_tokens(80, 73)};
    for (const Method method : {Method::kLazy, Method::kBlock, Method::kMepic}) {
      SCOPED_TRACE(method_name(method));
      const auto question = random_tokens(6, 74);
      const Answer cold = answer(documents, question, method, engine);
      const Answer warm = answer(documents, question, method, engine);
      EXPECT_EQ(cold.token_ids, warm.token_ids);
      EXPECT_LT(relative_difference(warm.prompt_logits, cold.prompt_logits), kTolerance);
      std::vector<Stream> streams;
      for (int i = 0; i < 6; ++i)
        streams.push_back(submit(engine, make_request(documents, question, method)));
      for (Stream& stream : streams) {
        const Answer shared = wait_for(stream);
        EXPECT_EQ(shared.token_ids, cold.token_ids);
        EXPECT_LT(relative_difference(shared.prompt_logits, cold.prompt_logits), kTolerance);
      }
      expect_idle(engine);
    }
  }

  static std::unique_ptr<Engine> engine_;
};

std::unique_ptr<Engine> MethodsTest::engine_;

TEST_F(MethodsTest, AnyLengthsInAnyOrder) {
  const uint64_t seed = 20260;
  std::mt19937_64 random(seed);
  Documents documents;
  for (const int length : {1, 15, 16, 17, 257, 4095}) {
    documents.push_back(random_tokens(length, static_cast<uint64_t>(length)));
  }
  const auto question = random_tokens(23, 5);
  std::vector<std::vector<float>> by_order;
  for (int order = 0; order < 4; ++order) {
    SCOPED_TRACE(testing::Message() << "seed " << seed << ", order " << order);
    expect_same_logits(documents, question);
    by_order.push_back(answer(documents, question, Method::kLazy).prompt_logits);
    std::shuffle(documents.begin(), documents.end(), random);
  }
  EXPECT_GT(relative_difference(by_order[1], by_order[0]), 100 * kTolerance)
      << "the order has no effect";
}

TEST_F(MethodsTest, RandomDocuments) {
  for (uint64_t seed = 1; seed <= 25; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    Documents documents;
    const auto count = 1 + random() % 12;
    for (uint64_t i = 0; i < count; ++i) {
      documents.push_back(random_tokens(1 + static_cast<int64_t>(random() % 70), random()));
    }
    expect_same_logits(documents, random_tokens(1 + static_cast<int64_t>(random() % 40), random()));
  }
}

TEST_F(MethodsTest, RandomDocumentsUnderWindows) {
  for (const int64_t window : {1, 9, 40, 150}) {
    RandomModel shape;
    shape.window = window;
    Engine engine = open_random_model(shape);
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      SCOPED_TRACE(testing::Message() << "window " << window << ", seed " << seed);
      std::mt19937_64 random(seed);
      Documents documents;
      const auto count = 2 + random() % 6;
      for (uint64_t i = 0; i < count; ++i) {
        documents.push_back(random_tokens(1 + static_cast<int64_t>(random() % 90), random()));
      }
      const auto question = random_tokens(1 + static_cast<int64_t>(random() % 20), random());
      expect_same_logits(documents, question, engine);
      const Answer full = answer(documents, question, Method::kFull, engine);
      const Answer prefix = answer(documents, question, Method::kPrefix, engine);
      EXPECT_LT(relative_difference(prefix.prompt_logits, full.prompt_logits), kTolerance);
    }
    const Documents documents{random_tokens(100, 1), random_tokens(100, 2)};
    const Answer inside = answer(documents, {7, 8}, Method::kLazy, engine);
    EXPECT_GT(relative_difference(inside.prompt_logits,
                                  answer(documents, {7, 8}, Method::kLazy).prompt_logits),
              100 * kTolerance)
        << "window " << window << " hides nothing";
  }
}

TEST_F(MethodsTest, OneDocumentAndTheSameDocumentTwice) {
  const auto document = random_tokens(33, 8);
  const auto other = random_tokens(20, 9);
  expect_same_logits({document}, {7});
  expect_same_logits({document, document}, {7, 8});
  expect_same_logits({document, other, document}, {7, 8});
}

TEST_F(MethodsTest, ThreeHundredDocuments) {
  Documents documents;
  for (uint64_t i = 0; i < 300; ++i)
    documents.push_back(random_tokens(1 + static_cast<int64_t>(i % 20), 1000 + i));
  expect_same_logits(documents, random_tokens(9, 3));
}

TEST_F(MethodsTest, PositionsPastAHundredThousand) {
  Documents documents;
  for (uint64_t i = 0; i < 27; ++i) documents.push_back(random_tokens(4000, 2000 + i));
  const Request request = make_request(documents, random_tokens(9, 3), Method::kLazy);
  int64_t tokens = 9;
  for (const auto& document : documents) tokens += static_cast<int64_t>(document.size());
  ASSERT_GT(tokens, 100000);
  expect_same_logits(documents, random_tokens(9, 3));
}

TEST_F(MethodsTest, TextBetweenDocuments) {
  std::vector<std::vector<float>> logits;
  for (const Method method : {Method::kLazy, Method::kBlock, Method::kMepic}) {
    Request request;
    request.segments = {
        document_segment(random_tokens(40, 1)), text_segment(random_tokens(19, 2)),
        document_segment(random_tokens(17, 3)), document_segment(random_tokens(5, 4)),
        text_segment(random_tokens(33, 5)),     document_segment(random_tokens(16, 6)),
        text_segment(random_tokens(3, 7))};
    request.method = method;
    request.prompt_logits = true;
    logits.push_back(run(*engine_, request).prompt_logits);
    ASSERT_EQ(logits.back().size(), (19U + 33U + 3U) * 128U);
    EXPECT_LT(relative_difference(logits.back(), logits.front()), kTolerance)
        << method_name(method);
  }
}

TEST_F(MethodsTest, PrefixEqualsFullColdAndWarm) {
  const Documents documents{random_tokens(100, 1), random_tokens(17, 2), random_tokens(333, 3)};
  const auto question = random_tokens(21, 4);
  const Answer full = answer(documents, question, Method::kFull);
  const Answer cold = answer(documents, question, Method::kPrefix);
  const Answer warm = answer(documents, question, Method::kPrefix);
  ASSERT_EQ(full.prompt_logits.size(), question.size() * 128) << "documents give no logits";
  EXPECT_LT(relative_difference(cold.prompt_logits, full.prompt_logits), kTolerance);
  EXPECT_LT(relative_difference(warm.prompt_logits, full.prompt_logits), kTolerance);
  EXPECT_EQ(cold.usage.cached_tokens, 0);
  EXPECT_EQ(warm.usage.cached_tokens, 450 / 16 * 16);
  EXPECT_EQ(answer(documents, question, Method::kFull).usage.cached_tokens, 0);

  // Alone is not in place: documents that do not see each other give other logits.
  EXPECT_GT(relative_difference(answer(documents, question, Method::kLazy).prompt_logits,
                                full.prompt_logits),
            100 * kTolerance);
}

// Recomputed first blocks see what stands before them: with documents of one block mepic is full.
TEST_F(MethodsTest, MepicWithRecomputedFirstBlocks) {
  const TemporaryModel model({});
  EngineConfig config = float32_config(model.path());
  config.mepic_recompute_first_block = true;
  Engine engine = open_engine(config);
  const Documents short_documents{random_tokens(16, 1), random_tokens(9, 2), random_tokens(16, 3)};
  const auto question = random_tokens(5, 4);
  const Answer full = run(engine, make_request(short_documents, question, Method::kFull));
  for (int pass = 0; pass < 2; ++pass) {
    const Answer mepic = run(engine, make_request(short_documents, question, Method::kMepic));
    EXPECT_LT(relative_difference(mepic.prompt_logits, full.prompt_logits), kTolerance);
    EXPECT_EQ(mepic.usage.cached_tokens, 0) << "the recomputed block is no hit";
  }
  const Documents long_documents{random_tokens(40, 1), random_tokens(50, 2)};
  const Answer first = run(engine, make_request(long_documents, question, Method::kMepic));
  const Answer second = run(engine, make_request(long_documents, question, Method::kMepic));
  EXPECT_EQ(second.usage.cached_tokens, 40 + 50 - 2 * 16);
  EXPECT_LT(relative_difference(second.prompt_logits, first.prompt_logits), kTolerance);
  EXPECT_GT(relative_difference(
                first.prompt_logits,
                run(engine, make_request(long_documents, question, Method::kLazy)).prompt_logits),
            100 * kTolerance);
  expect_idle(engine);
}

TEST_F(MethodsTest, AColdRequestEqualsAWarmOneAndASharedOne) { expect_cold_equals_warm(*engine_); }

TEST_F(MethodsTest, KvOfFp8TakesAQuarterAndAnswersNearlyTheSame) {
  const TemporaryModel model{RandomModel()};
  EngineConfig config = float32_config(model.path());
  for (const std::string& device : {std::string("reference"), config.device}) {
    if (device == "cuda") continue;  // refused, see engine_test
    SCOPED_TRACE(device);
    config.device = device;
    config.kv_cache_dtype = KvCacheType::kComputeType;
    Engine exact = open_engine(config);
    config.kv_cache_dtype = KvCacheType::kFp8E4M3;
    Engine rounded = open_engine(config);
    EXPECT_EQ(4 * rounded.model().kv_bytes_per_token, exact.model().kv_bytes_per_token);
    expect_cold_equals_warm(rounded);
    const Documents documents{random_tokens(50, 81), random_tokens(18, 82), random_tokens(80, 83)};
    const auto question = random_tokens(6, 84);
    for (const Method method : kAllMethods) {
      const double difference =
          relative_difference(answer(documents, question, method, rounded).prompt_logits,
                              answer(documents, question, method, exact).prompt_logits);
      EXPECT_LT(difference, 0.1) << method_name(method);
      EXPECT_GT(difference, kTolerance) << method_name(method);
    }
  }
}

}  // namespace
}  // namespace anyslot
