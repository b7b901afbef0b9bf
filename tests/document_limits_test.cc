// What pins, tenants and the pool allow, and what is refused.
#include <gmock/gmock.h>

#include <optional>

#include "support/documents_fixture.h"

namespace anyslot {
namespace {

using namespace testing_support;
using testing::HasSubstr;

TEST_F(DocumentsTest, ATenantTakesAShareOfPinsWhateverItsSalts) {
  Engine engine = open(40);
  const auto pinning = [&](const Segment& segment, const DocumentOptions& options) {
    Segment pinned = segment;
    pinned.pin = true;
    return registering(engine, pinned, options);
  };
  ASSERT_TRUE(pinning(document(1, 100), {std::nullopt, "red|a", "red"}).ok());
  const Status second = pinning(document(2, 100), {std::nullopt, "red|b", "red"});
  EXPECT_EQ(second.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(second.message(), HasSubstr("takes 7 blocks, and 7 are pinned; at most 10 of 40"));
  EXPECT_TRUE(pinning(document(2, 100), {std::nullopt, "blue|", "blue"}).ok());

  Request request = ask({document(3, 500)});
  request.cache_salt = request.tenant = "green";
  Stream stream = submit(engine, request);
  const Event event = stream.next();
  EXPECT_EQ(event.error_code, StatusCode::kResourceExhausted);
  EXPECT_THAT(event.error, HasSubstr("needs 33 KV blocks"));
  EXPECT_THAT(event.error, HasSubstr("0 of 40 are pinned by you")) << "not those of others";
  expect_idle(engine);
}

// Two tenants that share a salt share its documents: a pin counts for the one that came first.
TEST_F(DocumentsTest, APinCountsForTheTenantThatADocumentWasEncodedFor) {
  Engine engine = open(40);
  const auto ask_as = [&](const std::string& tenant, const std::vector<Segment>& documents) {
    Request request = ask(documents);
    request.cache_salt = "shared";
    request.tenant = tenant;
    return request;
  };
  const auto pinned = [](uint64_t seed, int64_t tokens) {
    Segment segment = document(seed, tokens);
    segment.pin = true;
    return segment;
  };
  Request longer = ask_as("blue", {pinned(4, 40)});
  longer.sampling.max_tokens = 100;
  longer.sampling.ignore_eos = true;
  Stream running = submit(engine, longer);
  running.next();
  EXPECT_EQ(run(engine, ask_as("red", {document(1, 60), pinned(2, 100)})).error, "");
  const Answer refused = run(engine, ask_as("blue", {pinned(1, 60)}));
  EXPECT_THAT(refused.error, HasSubstr("pinning takes 4 blocks, and 7 are pinned; at most 10 of"));
  EXPECT_EQ(run(engine, ask_as("blue", {pinned(3, 60)})).error, "") << "its own share has room";
  EXPECT_EQ(wait_for(running).token_ids.size(), 99U) << "others are not disturbed";
  expect_idle(engine);
}

TEST_F(DocumentsTest, ADefaultOfMaxTokensIsCutToThePool) {
  Engine engine = open(40);
  Request request = ask({document(1, 300)});
  request.sampling.max_tokens = 1000;
  request.sampling.ignore_eos = true;
  EXPECT_EQ(engine.submit(request).status().code(), StatusCode::kOutOfRange);
  request.fit_max_tokens = true;
  // 19 blocks of the document leave 21 for 3 tokens of text and the answer.
  EXPECT_EQ(run(engine, request).token_ids.size(), 21U * 16 - 3);
  request.segments.front() = document(1, 700);
  EXPECT_EQ(engine.submit(request).status().code(), StatusCode::kOutOfRange);
  expect_idle(engine);
}

TEST_F(DocumentsTest, IdsAreShort) {
  Engine engine = open();
  Segment longest = document(1);
  longest.id.assign(kMaxIdBytes, 'x');
  EXPECT_EQ(register_document(engine, longest).id, longest.id);
  longest.id += 'x';
  const Status status = registering(engine, longest);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("id has 257 bytes; at most 256"));
  EXPECT_EQ(engine.submit(ask({longest})).status().code(), StatusCode::kInvalidArgument);
}

TEST_F(DocumentsTest, RefusesToRegisterWhatCannotBeKept) {
  Engine engine = open(40);
  const Status text = registering(engine, text_segment({1, 2}));
  EXPECT_EQ(text.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(text.message(), HasSubstr("must be a document"));
  for (const Method method : {Method::kPrefix, Method::kFull}) {
    const Status status = registering(engine, document(1), {method, ""});
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr("keeps no documents"));
  }
  EXPECT_EQ(registering(engine, document_segment({})).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(registering(engine, document_segment({128})).code(), StatusCode::kInvalidArgument);
  const Status large = registering(engine, document(1, 700));
  EXPECT_EQ(large.code(), StatusCode::kOutOfRange);
  EXPECT_THAT(large.message(), HasSubstr("needs 44 KV blocks (0.3 MiB) for 700 tokens, but the "
                                         "pool has 40"));
  EXPECT_THAT(registering(engine, document(1, 8192)).message(),
              HasSubstr("8192 tokens, which leaves no room"));
  Segment pinned = document(1, 400);
  pinned.pin = true;
  const Status half = registering(engine, pinned);
  EXPECT_EQ(half.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(half.message(), HasSubstr("pinning takes 25 blocks, and 0 are pinned; at most 20"));
  Segment timed = document(1);
  timed.ttl_seconds = -1;
  EXPECT_THAT(registering(engine, timed).message(), HasSubstr("ttl is -1 seconds"));
  EXPECT_TRUE(list_documents(engine).empty());
  expect_idle(engine);
}

TEST_F(DocumentsTest, RequestsAreRefusedWishesThatNobodyCanKeep) {
  Engine engine = open(40);
  const auto message = [&](Request request) {
    const auto stream = engine.submit(request);
    return stream.ok() ? std::string() : stream.status().message();
  };
  Request request = ask({document(1)});
  request.segments[0].pin = true;
  request.method = Method::kPrefix;
  EXPECT_THAT(message(request), HasSubstr("'d1') has a pin, but this method keeps no documents"));
  request.segments[0].pin = false;
  request.segments[0].ttl_seconds = 5;
  EXPECT_THAT(message(request), HasSubstr("'d1') has a ttl, but this method keeps no documents"));
  request = ask({document(1)});
  request.segments[1].pin = true;
  EXPECT_THAT(message(request), HasSubstr("segment 1 is text; pin is for documents"));

  request = ask({document(1), document(2, 340)});
  request.segments[1].pin = true;
  const Answer answer = run(engine, request);
  EXPECT_EQ(answer.finish_reason, FinishReason::kError);
  Stream stream = submit(engine, request);
  const Event event = stream.next();
  EXPECT_EQ(event.error_code, StatusCode::kResourceExhausted);
  EXPECT_THAT(event.error, HasSubstr("pinning takes 22 blocks, and 0 are pinned"));
  EXPECT_TRUE(event.last);
  expect_idle(engine);
  EXPECT_EQ(run(engine, ask({document(1)})).finish_reason, FinishReason::kLength);
}

TEST_F(DocumentsTest, AllChoicesOfARefusedRequestEnd) {
  Engine engine = open(40);
  Request request = ask({document(2, 340)});
  request.segments[0].pin = true;
  request.sampling.n = 3;
  Stream stream = submit(engine, request);
  const std::vector<Answer> answers = wait_for_choices(stream);
  ASSERT_EQ(answers.size(), 3U);
  for (const Answer& answer : answers) EXPECT_EQ(answer.finish_reason, FinishReason::kError);
  expect_idle(engine);
}

TEST_F(DocumentsTest, WhatDoesNotFitBesidePinsIsRefusedWithTheNumbers) {
  Engine engine = open(40);
  Segment pinned = document(1, 300);
  pinned.pin = true;
  const CachedDocument cached = register_document(engine, pinned);
  EXPECT_TRUE(cached.pinned);
  const Answer answer = run(engine, ask({document(2, 340)}));
  EXPECT_EQ(answer.finish_reason, FinishReason::kError);
  EXPECT_THAT(answer.error, HasSubstr("needs 23 KV blocks, but pinned documents leave 21 of 40"));
  EXPECT_EQ(run(engine, ask({document(1, 300), document(3, 300)})).finish_reason,
            FinishReason::kLength)
      << "a pinned document of its own takes no more room";
  EXPECT_THAT(registering(engine, document(2, 340)).message(),
              HasSubstr("needs 22 KV blocks, but pinned documents leave 21 of 40"));
  ASSERT_TRUE(engine.unpin_document(cached.key, "").ok());
  EXPECT_EQ(run(engine, ask({document(2, 340)})).finish_reason, FinishReason::kLength);
  expect_idle(engine);
}

// Pins that come while a request waits, or runs and grows, end it when it can never fit again.
TEST_F(DocumentsTest, PinsThatComeLaterEndWhatCannotFitAnyMore) {
  Engine engine = open(40);
  const CachedDocument cached = register_document(engine, document(1, 300));
  Request request = ask({document(2, 100)});
  request.sampling.max_tokens = 400;
  Stream stream = submit(engine, request);
  ASSERT_TRUE(engine.pin_document(cached.key, "").ok());
  const Answer answer = wait_for(stream);
  EXPECT_EQ(answer.finish_reason, FinishReason::kError);
  EXPECT_THAT(answer.error, HasSubstr("pinned documents leave 21 of 40"));
  expect_idle(engine);
}

}  // namespace
}  // namespace anyslot
