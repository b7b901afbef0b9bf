// Documents that users handle by name: registered ahead, listed, removed.
#include <gmock/gmock.h>

#include <chrono>
#include <future>
#include <new>
#include <optional>
#include <stdexcept>
#include <thread>

#include "support/documents_fixture.h"

namespace anyslot {
namespace {

using namespace testing_support;
using testing::HasSubstr;

TEST_F(DocumentsTest, ARegisteredDocumentIsFoundByTheMethodsThatShareIt) {
  Engine engine = open();
  const CachedDocument first = register_document(engine, document(1));
  EXPECT_EQ(first.id, "d1");
  EXPECT_EQ(first.tokens, 40);
  EXPECT_EQ(first.bytes, 3 * kBlockBytes);
  EXPECT_EQ(first.hits, 0);
  EXPECT_FALSE(first.encoding);
  EXPECT_FALSE(first.pinned);
  EXPECT_FALSE(first.ttl_left_seconds.has_value());
  const int64_t steps = engine.stats().steps_total;
  EXPECT_EQ(register_document(engine, document(1)).key, first.key);
  EXPECT_EQ(engine.stats().steps_total, steps) << "it is there already";
  EXPECT_EQ(engine.stats().document_pool_tokens_total, 0) << "nor is that a hit";

  EXPECT_EQ(run(engine, ask({document(1)})).usage.cached_tokens, 40);
  EXPECT_EQ(run(engine, ask({document(1)}, Method::kBlock)).usage.cached_tokens, 40);
  EXPECT_EQ(run(engine, ask({document(1)}, Method::kMepic)).usage.cached_tokens, 0);
  EXPECT_EQ(list_documents(engine).size(), 2U) << "one for mepic";
  EXPECT_EQ(list_documents(engine).back().hits, 2);
  expect_idle(engine);
}

TEST_F(DocumentsTest, WhatIsRegisteredAndAskedForAtOnceIsEncodedOnce) {
  Engine engine = open();
  std::vector<std::promise<Expected<CachedDocument>>> registered(3);
  std::optional<Stream> stream;
  hold(engine, [&] {
    for (auto& result : registered) {
      engine.register_document(document(1, 300), {}, [&result](Expected<CachedDocument> cached) {
        result.set_value(std::move(cached));
      });
    }
    stream.emplace(submit(engine, ask({document(1, 300)})));
  });
  std::string key;
  for (auto& result : registered) {
    const auto cached = result.get_future().get();
    ASSERT_TRUE(cached.ok()) << cached.status().message();
    if (key.empty()) key = cached->key;
    EXPECT_EQ(cached->key, key);
  }
  const Usage usage = wait_for(*stream).usage;
  EXPECT_EQ(usage.documents.at(0).source, DocumentSource::kComputed) << "answers come first";
  EXPECT_EQ(usage.cached_tokens, 0);
  EXPECT_EQ(engine.stats().document_entries, 1);
  // One step encodes the document and computes the prompt, and three decode.
  EXPECT_EQ(engine.stats().steps_total, 4);
  expect_idle(engine);
}

TEST_F(DocumentsTest, RegisteringWaitsForItsTurnWithoutStoppingOthers) {
  Engine engine = open(200, 1);
  std::vector<std::promise<Expected<CachedDocument>>> registered(4);
  std::vector<Stream> streams;
  hold(engine, [&] {
    for (uint64_t i = 0; i < registered.size(); ++i) {
      streams.push_back(submit(engine, ask({document(1), document(i)})));
      engine.register_document(document(i % 2), {}, [&result = registered[i]](auto cached) {
        result.set_value(std::move(cached));
      });
    }
  });
  for (Stream& stream : streams) EXPECT_EQ(wait_for(stream).token_ids.size(), 4U);
  for (auto& result : registered) EXPECT_TRUE(result.get_future().get().ok());
  expect_idle(engine);
}

TEST_F(DocumentsTest, ARegistrationThatIsGivenUpStopsUnlessOthersWait) {
  Engine engine = open();
  std::vector<std::promise<Expected<CachedDocument>>> registered(3);
  std::vector<std::function<void()>> give_up;
  const std::vector<uint64_t> seeds = {1, 2, 2};
  hold(engine, [&] {
    for (size_t i = 0; i < seeds.size(); ++i) {
      give_up.push_back(engine.register_document(
          document(seeds[i], 300), {},
          [&result = registered[i]](auto cached) { result.set_value(std::move(cached)); }));
    }
    give_up[0]();
    give_up[1]();
  });
  for (const size_t i : {0, 1}) {
    EXPECT_EQ(registered[i].get_future().get().status().code(), StatusCode::kCancelled);
  }
  EXPECT_TRUE(registered[2].get_future().get().ok());
  const std::vector<CachedDocument> listed = list_documents(engine);
  ASSERT_EQ(listed.size(), 1U);
  EXPECT_EQ(listed[0].id, "d2");
  for (const auto& call : give_up) call();  // nothing is left to give up
  EXPECT_EQ(list_documents(engine).size(), 1U);
  expect_idle(engine);
}

TEST_F(DocumentsTest, AFunctionThatThrowsIsNobodysConcern) {
  Engine engine = open();
  Stream stream = submit(engine, ask({document(2)}));
  std::promise<Status> told;
  engine.register_document(document(1), {}, [&told](const Expected<CachedDocument>& cached) {
    told.set_value(cached.status());
    throw std::runtime_error("a client that fails");
  });
  EXPECT_TRUE(told.get_future().get().ok());
  EXPECT_EQ(wait_for(stream).finish_reason, FinishReason::kLength);
  EXPECT_EQ(list_documents(engine).size(), 2U);
  expect_idle(engine);
}

TEST_F(DocumentsTest, ACallThatCannotRunDoesNotReportSuccess) {
  Engine engine = open();
  const std::string key = register_document(engine, document(1)).key;
  EngineTestAccess::core(engine).close();
  EXPECT_EQ(engine.pin_document(key, "").code(), StatusCode::kUnavailable);
  EXPECT_EQ(engine.unpin_document(key, "").code(), StatusCode::kUnavailable);
  EXPECT_EQ(engine.remove_document(key, "").code(), StatusCode::kUnavailable);
  EXPECT_EQ(engine.documents("").status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(engine.check_integrity().code(), StatusCode::kUnavailable);
  EXPECT_EQ(registering(engine, document(2)).code(), StatusCode::kUnavailable);
  EXPECT_EQ(engine.submit(ask({document(1)})).status().code(), StatusCode::kUnavailable);
}

TEST_F(DocumentsTest, ACallThatThrowsFailsAlone) {
  Engine engine = open();
  Request request = ask({document(1)});
  request.sampling.max_tokens = 100;
  request.sampling.ignore_eos = true;
  Stream stream = submit(engine, request);
  stream.next();
  internal::EngineCore& core = EngineTestAccess::core(engine);
  const Status exhausted = core.call([](internal::StepLoop&) -> Status { throw std::bad_alloc(); });
  EXPECT_EQ(exhausted.code(), StatusCode::kResourceExhausted);
  const Status failed =
      core.call([](internal::StepLoop&) -> Status { throw std::runtime_error("broken"); });
  EXPECT_EQ(failed.code(), StatusCode::kInternal);
  EXPECT_THAT(failed.message(), HasSubstr("broken"));
  const Answer answer = wait_for(stream);
  EXPECT_EQ(answer.finish_reason, FinishReason::kLength) << answer.error;
  EXPECT_EQ(answer.token_ids.size(), 99U);
  expect_idle(engine);
}

TEST_F(DocumentsTest, AnEngineThatEndsTellsThoseWhoWait) {
  std::promise<Expected<CachedDocument>> registered;
  std::optional<Stream> stream;
  {
    Engine engine = open();
    hold(engine, [&] {
      engine.register_document(document(1), {}, [&registered](Expected<CachedDocument> cached) {
        registered.set_value(std::move(cached));
      });
      Request request = ask({document(2)});
      request.sampling.n = 2;
      stream.emplace(submit(engine, request));
      EngineTestAccess::core(engine).close();
    });
  }
  EXPECT_EQ(registered.get_future().get().status().code(), StatusCode::kUnavailable);
  const std::vector<Answer> answers = wait_for_choices(*stream);
  ASSERT_EQ(answers.size(), 2U);
  for (const Answer& answer : answers) EXPECT_EQ(answer.finish_reason, FinishReason::kCancelled);
}

TEST_F(DocumentsTest, KeysAreCheckedAndMeanOneSaltOnly) {
  Engine engine = open();
  const CachedDocument red = register_document(engine, document(1), {std::nullopt, "red"});
  const CachedDocument blue = register_document(engine, document(1), {std::nullopt, "blue"});
  EXPECT_NE(red.key, blue.key);
  for (const std::string& key :
       {std::string(), std::string("x"), std::string(64, 'g'), std::string(64, 'a'), blue.key}) {
    EXPECT_EQ(engine.pin_document(key, "red").code(), StatusCode::kNotFound) << key;
    EXPECT_EQ(engine.unpin_document(key, "red").code(), StatusCode::kNotFound) << key;
    EXPECT_EQ(engine.remove_document(key, "red").code(), StatusCode::kNotFound) << key;
  }
  ASSERT_TRUE(engine.pin_document(red.key, "red").ok());
  ASSERT_TRUE(engine.pin_document(red.key, "red").ok()) << "once more changes nothing";
  EXPECT_EQ(engine.stats().pinned_blocks, 3);
  EXPECT_EQ(engine.remove_document(red.key, "red").code(), StatusCode::kFailedPrecondition);
  ASSERT_TRUE(engine.unpin_document(red.key, "red").ok());
  ASSERT_TRUE(engine.unpin_document(red.key, "red").ok());
  EXPECT_EQ(engine.stats().pinned_blocks, 0);
  ASSERT_TRUE(engine.remove_document(red.key, "red").ok());
  EXPECT_EQ(engine.remove_document(red.key, "red").code(), StatusCode::kNotFound);
  EXPECT_TRUE(list_documents(engine, "red").empty());
  EXPECT_EQ(list_documents(engine, "blue").size(), 1U);
  expect_idle(engine);
}

TEST_F(DocumentsTest, WhatExpiresWhileTheEngineIsIdleGoesAtItsTime) {
  Engine engine = open();
  for (const uint64_t seed : {1, 2}) {
    Segment timed = document(seed);
    timed.ttl_seconds = seed;
    register_document(engine, timed);
  }
  register_document(engine, document(3));
  EXPECT_EQ(engine.stats().document_entries, 3);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  const auto wait_for_expirations = [&](int64_t count) {
    while (engine.stats().expirations_total < count && std::chrono::steady_clock::now() < deadline)
      std::this_thread::yield();
    return engine.stats();
  };
  const int64_t steps = engine.stats().steps_total;
  EXPECT_GE(wait_for_expirations(1).expirations_total, 1);
  const Stats stats = wait_for_expirations(2);
  EXPECT_EQ(stats.expirations_total, 2);
  EXPECT_EQ(stats.document_entries, 1);
  EXPECT_EQ(stats.free_blocks, 200 - 3);
  EXPECT_EQ(stats.steps_total, steps);
}

TEST_F(DocumentsTest, ADocumentRemovedInUseServesThoseWhoUseIt) {
  Engine engine = open();
  Request request = ask({document(1)});
  request.sampling.max_tokens = 200;
  const Answer expected = run(engine, request);
  const std::string key = list_documents(engine).at(0).key;
  Stream stream = submit(engine, request);
  stream.next();
  ASSERT_TRUE(engine.remove_document(key, "").ok());
  const Answer later = run(engine, request);
  EXPECT_EQ(later.usage.documents[0].cached_tokens, 0) << "it is cold";
  EXPECT_EQ(later.token_ids, expected.token_ids);
  const Answer answer = wait_for(stream);
  EXPECT_EQ(std::vector<int32_t>(expected.token_ids.begin() + 1, expected.token_ids.end()),
            answer.token_ids);
  EXPECT_EQ(list_documents(engine).size(), 1U);
  EXPECT_EQ(engine.stats().document_entries, 1);
  expect_idle(engine);
}

TEST_F(DocumentsTest, ThePreambleIsNotListed) {
  Engine engine = open();
  Request request = ask({document(1)});
  request.segments.insert(request.segments.begin(), text_segment(random_tokens(20, 9)));
  run(engine, request);
  const std::vector<CachedDocument> listed = list_documents(engine);
  ASSERT_EQ(listed.size(), 1U);
  EXPECT_EQ(listed[0].id, "d1");
}

TEST_F(DocumentsTest, TokensAreCountedBySourceAndOnlyOnce) {
  Engine engine = open();
  Request request = ask({document(1), document(2)});
  request.segments.insert(request.segments.begin(), text_segment(random_tokens(20, 9)));
  request.segments.back() = text_segment(random_tokens(40, 10));
  run(engine, request);
  request.sampling.n = 3;
  run(engine, request);
  const Stats stats = engine.stats();
  EXPECT_EQ(stats.prompt_tokens_total, 2 * 140);
  EXPECT_EQ(stats.document_computed_tokens_total, 80);
  EXPECT_EQ(stats.document_pool_tokens_total, 80);
  EXPECT_EQ(stats.document_joined_tokens_total, 0);
  EXPECT_EQ(stats.text_cached_tokens_total, 20 + 32) << "preamble and question";
  EXPECT_EQ(stats.cached_tokens_total, 80 + 20 + 32);
  std::vector<Stream> streams;
  hold(engine, [&] {
    for (int i = 0; i < 2; ++i) streams.push_back(submit(engine, ask({document(3)})));
  });
  for (Stream& stream : streams) wait_for(stream);
  EXPECT_EQ(engine.stats().document_computed_tokens_total, 80 + 40);
  EXPECT_EQ(engine.stats().document_joined_tokens_total, 40);
}

}  // namespace
}  // namespace anyslot
