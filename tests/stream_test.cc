// A stream's reader that does not wait.

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <new>
#include <optional>
#include <semaphore>
#include <vector>

#include "support/engine_support.h"
#include "support/random_model.h"

namespace anyslot {
namespace {

using namespace testing_support;

Request make_request(int max_tokens) {
  Request request;
  request.segments = {text_segment(random_tokens(20, 1))};
  request.sampling.max_tokens = max_tokens;
  return request;
}

class StreamTest : public testing::Test {
 protected:
  static Engine open() {
    static const TemporaryModel model({});
    return open_engine(float32_config(model.path()));
  }
};

TEST_F(StreamTest, ReadyIsCalledWheneverTryNextHadFoundNone) {
  Engine engine = open();
  const Answer expected = run(engine, make_request(50));
  Stream stream = submit(engine, make_request(50));
  std::counting_semaphore<> ready(0);
  std::atomic<int> calls = 0;
  stream.on_ready([&] {
    ++calls;
    ready.release();
  });
  std::vector<int32_t> tokens;
  int waits = 0;
  for (bool ended = false; !ended;) {
    std::optional<Event> event = stream.try_next();
    if (!event) {
      ready.acquire();  // would wait for ever if a call were lost
      ++waits;
      continue;
    }
    tokens.insert(tokens.end(), event->token_ids.begin(), event->token_ids.end());
    ended = event->last;
  }
  EXPECT_EQ(tokens, expected.token_ids);
  EXPECT_LE(calls - waits, 1) << "only the first call may come unasked";
  EXPECT_FALSE(stream.try_next().has_value()) << "nothing comes after the last event";
  EXPECT_TRUE(stream.next().last);
}

TEST_F(StreamTest, ReadyIsCalledAtOnceForWhatIsThere) {
  Engine engine = open();
  Stream stream = submit(engine, make_request(3));
  stream.next();
  do {  // each check waits for the end of a step, with the delivery of its events
    ASSERT_TRUE(engine.check_integrity().ok());
  } while (engine.stats().running_requests > 0);
  ASSERT_TRUE(engine.check_integrity().ok());
  int calls = 0;
  stream.on_ready([&] { ++calls; });
  EXPECT_EQ(calls, 1);
  while (stream.try_next()) {
  }
  EXPECT_EQ(calls, 1);
}

TEST_F(StreamTest, WhatWasReplacedIsNotCalledAgain) {
  Engine engine = open();
  Stream stream = submit(engine, make_request(100));
  std::atomic<int> first = 0;
  stream.on_ready([&] { ++first; });
  std::binary_semaphore ready(0);
  stream.on_ready([&] { ready.release(); });
  const int calls = first;
  EXPECT_LE(calls, 1);
  std::optional<Event> event;
  do {
    event = stream.try_next();
    if (!event) ready.acquire();
  } while (!event || !event->last);
  EXPECT_EQ(first, calls);
}

TEST_F(StreamTest, AFunctionThatThrowsCostsItsOwnStreamOnly) {
  Engine engine = open();
  std::optional<Stream> other;
  std::optional<Stream> stream;
  run_between_steps(engine, [&](internal::StepLoop&) {
    other.emplace(submit(engine, make_request(100)));
    stream.emplace(submit(engine, make_request(2000)));
    stream->on_ready([] { throw std::bad_alloc(); });
  });
  EXPECT_EQ(wait_for(*other).finish_reason, FinishReason::kLength);
  const Answer answer = wait_for(*stream);
  EXPECT_EQ(answer.finish_reason, FinishReason::kCancelled);
  EXPECT_LT(answer.token_ids.size(), 10U);
  expect_idle(engine);
}

// A reader that owns its stream and that the stream's function keeps alive.
TEST_F(StreamTest, TheFunctionMayOwnTheStream) {
  Engine engine = open();
  auto owner = std::make_shared<Stream>(submit(engine, make_request(2000)));
  Stream& stream = *owner;
  stream.on_ready([owner] {});
  owner.reset();
  stream.on_ready(nullptr);
  expect_idle(engine);
}

TEST_F(StreamTest, EventsSayWhenTheyWereMadeAndHowLongTheRequestWaited) {
  Engine engine = open();
  Stream stream = submit(engine, make_request(6));
  std::vector<double> times;
  std::optional<Event> event;
  do {
    event = stream.next();
    times.push_back(event->at_ms);
  } while (!event->last);
  ASSERT_EQ(times.size(), 6U);
  for (size_t i = 1; i < times.size(); ++i) EXPECT_GT(times[i], times[i - 1]);
  const Usage& usage = event->usage;
  EXPECT_GT(usage.queue_ms, 0);
  EXPECT_LE(usage.queue_ms, usage.ttft_ms);
  EXPECT_LE(usage.ttft_ms, times.front());
  EXPECT_LE(usage.total_ms, times.back());
}

}  // namespace
}  // namespace anyslot
