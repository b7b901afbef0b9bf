// The cache under crowds: many at once, many cancelled, many that never come again.

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "support/engine_support.h"
#include "support/random_model.h"

namespace anyslot {
namespace {

using namespace testing_support;

constexpr int64_t kBlockBytes = 2 * 2 * 2 * 16 * 16 * 4;

class CachePressure : public testing::TestWithParam<Method> {
 protected:
  static Engine open(int64_t blocks, int max_batch_tokens = 2048) {
    static const TemporaryModel model({});
    EngineConfig config = float32_config(model.path());
    config.method = GetParam();
    config.kv_cache_bytes = blocks * kBlockBytes;
    config.max_batch_tokens = max_batch_tokens;
    return open_engine(config);
  }

  static Request ask(const std::vector<uint64_t>& documents, uint64_t question,
                     int max_tokens = 4) {
    Request request;
    for (const uint64_t document : documents) {
      request.segments.push_back(
          document_segment(random_tokens(20 + static_cast<int64_t>(document % 30), document)));
    }
    request.segments.push_back(text_segment(random_tokens(5, 1000 + question)));
    request.sampling.max_tokens = max_tokens;
    return request;
  }
};

INSTANTIATE_TEST_SUITE_P(Methods, CachePressure, testing::ValuesIn(kAllMethods),
                         [](const auto& method) { return std::string(method_name(method.param)); });

using CachePressureAlone = CachePressure;
INSTANTIATE_TEST_SUITE_P(Methods, CachePressureAlone,
                         testing::Values(Method::kLazy, Method::kBlock, Method::kMepic),
                         [](const auto& method) { return std::string(method_name(method.param)); });

TEST_P(CachePressureAlone, SixteenRequestsOnOneColdDocumentEncodeItOnce) {
  Engine engine = open(1000, 100);
  Request request = ask({}, 0);
  request.segments.insert(request.segments.begin(), document_segment(random_tokens(500, 1)));
  std::vector<Stream> streams;
  run_between_steps(engine, [&](internal::StepLoop&) {
    for (uint64_t i = 0; i < 16; ++i) {
      request.segments.back() = text_segment(random_tokens(5, i));
      streams.push_back(submit(engine, request));
    }
  });
  int computed = 0;
  for (Stream& stream : streams) {
    const Usage usage = wait_for(stream).usage;
    computed += usage.documents[0].source == DocumentSource::kComputed ? 1 : 0;
    EXPECT_EQ(usage.cached_tokens, 0);
  }
  EXPECT_EQ(computed, 1);
  const Stats stats = engine.stats();
  EXPECT_EQ(stats.document_computed_tokens_total, 500);
  EXPECT_EQ(stats.document_joined_tokens_total, 15 * 500);
  EXPECT_EQ(stats.document_entries, 1);
  // 500 tokens of document and 80 of questions in steps of 100, and three steps of decoding.
  EXPECT_LE(stats.steps_total, 9);
  expect_idle(engine);
}

TEST_P(CachePressure, CancelsAtRandomMomentsLeaveNothingBehindAndDisturbNobody) {
  constexpr int kRounds = 50;
  constexpr int kCancelledPerRound = 8;  // 400 for each of the five methods
  const uint32_t seed = 4;
  std::mt19937 random(seed);
  Engine roomy = open(2000);
  Engine engine = open(60, 200);
  std::vector<std::vector<int32_t>> expected;
  for (uint64_t i = 0; i < 6; ++i) expected.push_back(run(roomy, ask({i, i + 1}, i, 12)).token_ids);
  for (int round = 0; round < kRounds; ++round) {
    SCOPED_TRACE(testing::Message() << "seed " << seed << ", round " << round);
    std::vector<Stream> kept;
    std::vector<uint64_t> kept_names;
    std::vector<Stream> cancelled;
    for (int i = 0; i < kCancelledPerRound; ++i) {
      const uint64_t name = random() % 6;
      if (i % 4 == 0) {
        kept.push_back(submit(engine, ask({name, name + 1}, name, 12)));
        kept_names.push_back(name);
      }
      Request request = ask({name, 100 + random() % 20}, name, 60);
      request.sampling.n = 1 + static_cast<int>(random() % 3);
      if (GetParam() != Method::kPrefix && GetParam() != Method::kFull) {
        request.segments[0].pin = random() % 8 == 0;
        if (random() % 2 == 0) request.segments[1].ttl_seconds = 1;
      }
      cancelled.push_back(submit(engine, request));
    }
    for (Stream& stream : cancelled) {
      for (auto events = random() % 5; events > 0; --events) stream.next();
      if (random() % 2 == 0) stream.cancel();
    }
    cancelled.clear();
    for (size_t i = 0; i < kept.size(); ++i)
      EXPECT_EQ(wait_for(kept[i]).token_ids, expected[kept_names[i]]);
  }
  expect_idle(engine);
  for (const CachedDocument& document : list_documents(engine))
    ASSERT_TRUE(engine.unpin_document(document.key, "").ok());
  EXPECT_EQ(engine.stats().pinned_blocks, 0);
  expect_idle(engine);
}

TEST_P(CachePressure, UniquePromptsInATinyPoolShowNoHitsWhateverIsPreempted) {
  Engine engine = open(40, 150);
  std::vector<Stream> streams;
  constexpr uint64_t kRequests = 120;
  for (uint64_t i = 0; i < kRequests; ++i) {
    streams.push_back(submit(engine, ask({1000 + 2 * i, 1001 + 2 * i}, i, 60)));
  }
  int64_t cached = 0;
  int64_t prompt = 0;
  for (Stream& stream : streams) {
    const Answer answer = wait_for(stream);
    EXPECT_EQ(answer.finish_reason, FinishReason::kLength) << answer.error;
    cached += answer.usage.cached_tokens;
    prompt += answer.usage.prompt_tokens;
  }
  const Stats stats = engine.stats();
  EXPECT_GT(stats.preemptions_total, 0);
  if (GetParam() != Method::kFull) {
    EXPECT_GT(stats.evictions_total, 0);
  }
  EXPECT_EQ(cached, 0);
  EXPECT_EQ(stats.prompt_tokens_total, prompt);
  EXPECT_EQ(stats.cached_tokens_total, 0);
  EXPECT_EQ(stats.document_pool_tokens_total, 0);
  EXPECT_EQ(stats.text_cached_tokens_total, 0);
  EXPECT_EQ(stats.document_joined_tokens_total, 0);
  expect_idle(engine);
}

TEST_P(CachePressure, CountersNeverFall) {
  Engine engine = open(40, 150);
  std::vector<Stream> streams;
  for (uint64_t i = 0; i < 60; ++i) streams.push_back(submit(engine, ask({i % 7, i % 5}, i, 40)));
  Stats before = engine.stats();
  for (size_t i = 0; i < streams.size(); ++i) {
    if (i % 3 == 0) streams[i].cancel();
    wait_for(streams[i]);
    const Stats now = engine.stats();
    for (const auto counter :
         {&Stats::steps_total, &Stats::kv_tokens_read_total, &Stats::blocks_copied_total,
          &Stats::evictions_total, &Stats::expirations_total, &Stats::preemptions_total,
          &Stats::prompt_tokens_total, &Stats::cached_tokens_total,
          &Stats::document_pool_tokens_total, &Stats::document_joined_tokens_total,
          &Stats::document_computed_tokens_total, &Stats::text_cached_tokens_total,
          &Stats::generated_tokens_total}) {
      EXPECT_GE(now.*counter, before.*counter);
    }
    before = now;
  }
  expect_idle(engine);
}

}  // namespace
}  // namespace anyslot
