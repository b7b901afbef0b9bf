// The engine as its users meet it: reuse, cancellation, refusals, several threads.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <random>
#include <thread>

#include "support/engine_support.h"
#include "support/random_model.h"

namespace anyslot {
namespace {

using namespace testing_support;
using testing::AllOf;
using testing::HasSubstr;

class EngineTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { model_ = new TemporaryModel(RandomModel{}); }
  static void TearDownTestSuite() {
    delete model_;
    model_ = nullptr;
  }

  static Engine open(int64_t kv_blocks = 4000) {
    EngineConfig config = float32_config(model_->path());
    config.kv_cache_bytes = kv_blocks * kBlockBytes;
    return open_engine(config);
  }

  static Request make_request(const std::vector<int>& documents, Method method = Method::kLazy,
                              int32_t question = 7) {
    Request request;
    for (const int document : documents) {
      Segment segment =
          document_segment(random_tokens(20 + document, static_cast<uint64_t>(document)));
      segment.id = "d" + std::to_string(document);
      request.segments.push_back(std::move(segment));
    }
    request.segments.push_back(text_segment({5, 6, question}));
    request.method = method;
    request.sampling.max_tokens = 6;
    return request;
  }

  static int64_t document_tokens(const std::vector<int>& documents) {
    int64_t tokens = 0;
    for (const int document : documents) tokens += 20 + document;
    return tokens;
  }

  static constexpr int64_t kBlockBytes = 2 * 2 * 2 * 16 * 16 * 4;
  static TemporaryModel* model_;
};

TemporaryModel* EngineTest::model_ = nullptr;

TEST_F(EngineTest, ASecondPassInNewOrdersAddsNoDocumentsAndFindsAll) {
  for (const Method method : {Method::kLazy, Method::kBlock, Method::kMepic}) {
    Engine engine = open();
    const std::vector<std::vector<int>> orders{{1, 2, 3, 4}, {4, 5, 1}, {2, 5, 3}};
    for (const auto& order : orders) run(engine, make_request(order, method));
    const int64_t entries = engine.stats().document_entries;
    EXPECT_EQ(entries, 5);
    std::mt19937 random(1);
    for (auto order : orders) {
      std::shuffle(order.begin(), order.end(), random);
      const Answer answer = run(engine, make_request(order, method, 9));
      EXPECT_EQ(answer.usage.cached_tokens, document_tokens(order));
      ASSERT_EQ(answer.usage.documents.size(), order.size());
      for (size_t i = 0; i < order.size(); ++i) {
        const DocumentUsage& usage = answer.usage.documents[i];
        EXPECT_EQ(usage.index, static_cast<int>(i));
        EXPECT_EQ(usage.id, "d" + std::to_string(order[i]));
        EXPECT_EQ(usage.tokens, 20 + order[i]);
        EXPECT_EQ(usage.cached_tokens, usage.tokens);
        EXPECT_EQ(usage.source, DocumentSource::kPool);
      }
    }
    EXPECT_EQ(engine.stats().document_entries, entries);
    expect_idle(engine);
  }
}

TEST_F(EngineTest, TheThirdRequestFindsTheDocumentThatTheSecondAdded) {
  for (const Method method : {Method::kLazy, Method::kPrefix}) {
    Engine engine = open();
    run(engine, make_request({12, 28}, method));
    const Answer second = run(engine, make_request({12, 28, 44}, method));
    const Answer third = run(engine, make_request({12, 28, 44}, method));
    EXPECT_EQ(second.usage.documents[2].cached_tokens, 0);
    EXPECT_EQ(second.usage.documents[2].source, DocumentSource::kComputed);
    EXPECT_EQ(third.usage.documents[2].cached_tokens, 64);
    EXPECT_EQ(third.token_ids, second.token_ids);
  }
}

TEST_F(EngineTest, UsageCountsTokensAndTimes) {
  Engine engine = open();
  const Answer answer = run(engine, make_request({1, 2}));
  EXPECT_EQ(answer.finish_reason, FinishReason::kLength);
  EXPECT_EQ(answer.usage.prompt_tokens, 21 + 22 + 3);
  EXPECT_EQ(answer.usage.completion_tokens, 6);
  EXPECT_EQ(answer.token_ids.size(), 6U);
  EXPECT_GT(answer.usage.ttft_ms, 0);
  EXPECT_GE(answer.usage.total_ms, answer.usage.ttft_ms);
}

TEST_F(EngineTest, StopsAtAStopToken) {
  Engine engine = open();
  Request request = make_request({1, 2});
  const Answer whole = run(engine, request);
  request.sampling.stop_token_ids = {whole.token_ids[2]};
  const Answer stopped = run(engine, request);
  EXPECT_EQ(stopped.finish_reason, FinishReason::kStop);
  EXPECT_EQ(stopped.token_ids.back(), whole.token_ids[2]);
  EXPECT_LE(stopped.token_ids.size(), 3U);
}

TEST_F(EngineTest, CancellingAtAnyMomentLeavesNothingBehindAndDisturbsNobody) {
  Engine engine = open(150);
  std::vector<Answer> expected;
  for (int i = 0; i < 4; ++i)
    expected.push_back(run(engine, make_request({i, i + 1}, Method::kLazy, 20 + i)));
  std::mt19937 random(5);
  for (int round = 0; round < 30; ++round) {
    std::vector<Stream> kept;
    std::vector<Stream> cancelled;
    for (int i = 0; i < 4; ++i) {
      kept.push_back(submit(engine, make_request({i, i + 1}, Method::kLazy, 20 + i)));
      Request request = make_request({i, 30 + round}, kAllMethods[random() % 5]);
      request.sampling.max_tokens = 100;
      cancelled.push_back(submit(engine, request));
    }
    for (Stream& stream : cancelled) {
      for (auto events = random() % 4; events > 0; --events) stream.next();
      if (random() % 2 == 0) stream.cancel();
    }
    cancelled.clear();
    for (size_t i = 0; i < kept.size(); ++i)
      EXPECT_EQ(wait_for(kept[i]).token_ids, expected[i].token_ids);
  }
  expect_idle(engine);
}

TEST_F(EngineTest, ACancelledStreamEndsAsCancelled) {
  Engine engine = open();
  Request request = make_request({1});
  request.sampling.max_tokens = 5000;
  Stream stream = submit(engine, request);
  stream.next();
  stream.cancel();
  const Answer answer = wait_for(stream);
  EXPECT_EQ(answer.finish_reason, FinishReason::kCancelled);
  EXPECT_EQ(*stream.next().finish_reason, FinishReason::kCancelled) << "the last event is repeated";
  expect_idle(engine);
}

TEST_F(EngineTest, AStreamMayOutliveItsEngine) {
  std::optional<Stream> stream;
  {
    Engine engine = open();
    Request request = make_request({1});
    request.sampling.max_tokens = 5000;
    stream.emplace(submit(engine, request));
  }
  EXPECT_EQ(wait_for(*stream).finish_reason, FinishReason::kCancelled);
}

TEST_F(EngineTest, ManyThreadsGetTheSequentialAnswers) {
  Engine engine = open(200);
  std::vector<Answer> expected;
  for (int i = 0; i < 12; ++i)
    expected.push_back(run(engine, make_request({i % 5, i % 3, i}, Method::kLazy, i)));
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 6; ++thread) {
    threads.emplace_back([&, thread] {
      for (int k = 0; k < 12; ++k) {
        const int i = (thread * 5 + k) % 12;
        const Answer answer = run(engine, make_request({i % 5, i % 3, i}, Method::kLazy, i));
        EXPECT_EQ(answer.token_ids, expected[static_cast<size_t>(i)].token_ids);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  expect_idle(engine);
}

TEST_F(EngineTest, SaltsKeepDocumentsApart) {
  Engine engine = open();
  Request request = make_request({1, 2});
  run(engine, request);
  request.cache_salt = "another tenant";
  EXPECT_EQ(run(engine, request).usage.cached_tokens, 0);
  EXPECT_EQ(run(engine, request).usage.cached_tokens, 43);
}

TEST_F(EngineTest, SamplingRepeatsWithItsSeed) {
  Engine engine = open();
  Request request = make_request({1, 2});
  request.sampling.temperature = 1.5F;
  request.sampling.max_tokens = 30;
  request.sampling.seed = 3;
  const Answer first = run(engine, request);
  EXPECT_EQ(run(engine, request).token_ids, first.token_ids);
  request.sampling.seed = 4;
  EXPECT_NE(run(engine, request).token_ids, first.token_ids);
}

TEST_F(EngineTest, PreemptedRequestsGiveTheSameAnswers) {
  for (const Method method : kAllMethods) {
    SCOPED_TRACE(method_name(method));
    const auto make_long = [&](int i) {
      Request request = make_request({i % 3, 30 + i % 2}, method, 40 + i);
      request.segments.insert(request.segments.begin() + 1, text_segment(random_tokens(11, 99)));
      request.sampling.max_tokens = 120;
      return request;
    };
    Engine roomy = open();
    Engine tight = open(24);
    std::vector<Answer> expected;
    for (int i = 0; i < 6; ++i) expected.push_back(run(roomy, make_long(i)));
    std::vector<Stream> streams;
    for (int i = 0; i < 6; ++i) streams.push_back(submit(tight, make_long(i)));
    for (size_t i = 0; i < streams.size(); ++i)
      EXPECT_EQ(wait_for(streams[i]).token_ids, expected[i].token_ids) << i;
    EXPECT_GT(tight.stats().preemptions_total, 0);
    expect_idle(tight);
  }
}

struct Refusal {
  std::function<void(Request&)> change;
  StatusCode code;
  std::string message;
};

TEST_F(EngineTest, RefusesWithTheThingTheLimitAndTheCure) {
  Engine engine = open(40);
  const std::vector<Refusal> refusals{
      {[](Request& r) { r.segments.clear(); }, StatusCode::kInvalidArgument, "no tokens"},
      {[](Request& r) { r.segments.pop_back(); }, StatusCode::kInvalidArgument,
       "ends in document 1 ('d2')"},
      {[](Request& r) { r.segments[0].token_ids.clear(); }, StatusCode::kInvalidArgument,
       "document 0 ('d1') has no tokens"},
      {[](Request& r) { r.segments[1].token_ids[3] = 128; }, StatusCode::kInvalidArgument,
       "token id 128 is not in the vocabulary of 128"},
      {[](Request& r) { r.segments[1].token_ids[3] = -1; }, StatusCode::kInvalidArgument,
       "token id -1"},
      {[](Request& r) {
         r.segments[0] = Segment{SegmentKind::kDocument, "text", {}, {}, ""};
       },
       StatusCode::kFailedPrecondition, "no tokenizer.json"},
      {[](Request& r) { r.segments[0].token_ids = random_tokens(8192, 1); },
       StatusCode::kOutOfRange,
       "the prompt has 8217 tokens, which leaves no room for an answer within the model's length "
       "of 8192"},
      {[](Request& r) { r.segments[0].token_ids = random_tokens(700, 1); }, StatusCode::kOutOfRange,
       "the request needs 47 KV blocks (0.4 MiB) for 725 prompt and 6 answer tokens, but the pool "
       "has 40 (0.3 MiB)"},
      {[](Request& r) { r.sampling.max_tokens = 0; }, StatusCode::kInvalidArgument,
       "max_tokens is 0"},
      {[](Request& r) { r.sampling.top_p = 0; }, StatusCode::kInvalidArgument, "top_p is 0"},
      {[](Request& r) { r.sampling.top_k = -1; }, StatusCode::kInvalidArgument, "top_k is -1"},
      {[](Request& r) { r.sampling.temperature = -1; }, StatusCode::kInvalidArgument,
       "temperature is -1"},
  };
  for (const Refusal& refusal : refusals) {
    SCOPED_TRACE(refusal.message);
    Request request = make_request({1, 2});
    refusal.change(request);
    const auto stream = engine.submit(request);
    ASSERT_FALSE(stream.ok());
    EXPECT_EQ(stream.status().code(), refusal.code);
    EXPECT_THAT(stream.status().message(), HasSubstr(refusal.message));
  }
  expect_idle(engine);
  EXPECT_EQ(run(engine, make_request({1, 2})).finish_reason, FinishReason::kLength)
      << "and serves on";
}

TEST_F(EngineTest, DoesNotOpenWithUnusableOptions) {
  const auto message = [](const std::function<void(EngineConfig&)>& change) {
    EngineConfig config = float32_config(model_->path());
    change(config);
    auto engine = Engine::open(config);
    return engine.ok() ? std::string() : engine.status().message();
  };
  EXPECT_THAT(message([](EngineConfig& c) { c.model_path = ""; }), HasSubstr("no model given"));
  EXPECT_THAT(message([](EngineConfig& c) { c.model_path = "/nowhere"; }), HasSubstr("/nowhere"));
  EXPECT_THAT(message([](EngineConfig& c) { c.device = "tpu"; }),
              HasSubstr("unknown device 'tpu'"));
  EXPECT_THAT(message([](EngineConfig& c) {
                c.device = "cpu";
                c.dtype = ComputeType::kFloat16;
              }),
              AllOf(HasSubstr("not in float16"), HasSubstr("--dtype bfloat16")));
  EXPECT_THAT(message([](EngineConfig& c) { c.tokenizer_path = c.model_path; }),
              HasSubstr("--random-weights only"));
  EXPECT_THAT(message([](EngineConfig& c) { c.num_threads = -1; }), HasSubstr("threads is -1"));
  EXPECT_THAT(message([](EngineConfig& c) { c.kv_cache_bytes = 100; }),
              HasSubstr("holds no block of 16 tokens"));
  EXPECT_THAT(message([](EngineConfig& c) {
                c.device = "cpu";
                c.max_isa = "sse9";
              }),
              HasSubstr("sse9"));
  EXPECT_THAT(message([](EngineConfig& c) { c.gpu_memory_utilization = 1.5; }),
              HasSubstr("gpu_memory_utilization is 1.5"));
  EXPECT_THAT(message([](EngineConfig& c) { c.max_batch_tokens = 64; }),
              HasSubstr("must exceed max_running_requests"));
}

}  // namespace
}  // namespace anyslot
