// Calls of CUDA that fail once: the requests at hand fail and say why, and the engine goes on.

#include <gmock/gmock.h>

#include <array>
#include <vector>

#include "cuda/fault_test_support.h"

namespace anyslot {
namespace {

using namespace testing_support;
using testing::HasSubstr;

constexpr double kTolerance = 0.05;  // of the largest logit, in bfloat16
constexpr int64_t kFaultsOfKind = 8;

class CudaFaults : public CudaFaultTest {
 protected:
  /// What the documents in the pool give, however they came there.
  static std::vector<float> logits(Engine& engine, Method method) {
    Request request = CudaFaults::request(method, 1, 1);
    request.prompt_logits = true;
    return run(engine, request).prompt_logits;
  }

  static std::array<int64_t, kNumCudaCalls> calls_of(Engine& engine, const Request& request) {
    count_cuda_calls();
    run(engine, request);
    std::array<int64_t, kNumCudaCalls> calls{};
    for (int kind = 0; kind < kNumCudaCalls; ++kind) {
      calls[static_cast<size_t>(kind)] = num_cuda_calls(static_cast<CudaCall>(kind));
    }
    return calls;
  }

  static void expect_failure_and_recovery(CudaCall call, int64_t index, Method method,
                                          const std::vector<float>& expected) {
    Engine engine = open_engine(config());
    fail_cuda_call(call, index);
    const Answer failed = run(engine, request(method));
    EXPECT_TRUE(has_failed_cuda_call());
    EXPECT_EQ(failed.finish_reason, FinishReason::kError);
    EXPECT_FALSE(failed.error.empty());
    if (call == CudaCall::kMalloc) {
      EXPECT_THAT(failed.error, HasSubstr("bytes are free"));
    }
    expect_idle(engine);

    count_cuda_calls();
    const Answer next = run(engine, request(method));
    EXPECT_EQ(next.finish_reason, FinishReason::kLength) << next.error;
    EXPECT_EQ(next.token_ids.size(), 12U);
    EXPECT_LT(relative_difference(logits(engine, method), expected), kTolerance);
    expect_idle(engine);
  }

  static void fail_every_kind_of_call(Method method) {
    Engine engine = open_engine(config());
    const auto calls = calls_of(engine, request(method));
    const std::vector<float> expected = logits(engine, method);
    for (int kind = 0; kind < kNumCudaCalls; ++kind) {
      const auto call = static_cast<CudaCall>(kind);
      const int64_t count = calls[static_cast<size_t>(kind)];
      const int64_t faults = std::min(count, kFaultsOfKind);
      for (int64_t i = 0; i < faults; ++i) {
        const int64_t index = faults == 1 ? 0 : i * (count - 1) / (faults - 1);
        SCOPED_TRACE(name_of(call) + " " + std::to_string(index) + " of " + std::to_string(count));
        expect_failure_and_recovery(call, index, method, expected);
      }
    }
  }
};

TEST_F(CudaFaults, InAStepOfLazyFailItsRequestOnly) { fail_every_kind_of_call(Method::kLazy); }
TEST_F(CudaFaults, InAStepOfBlockFailItsRequestOnly) { fail_every_kind_of_call(Method::kBlock); }
TEST_F(CudaFaults, InAStepOfMepicFailItsRequestOnly) { fail_every_kind_of_call(Method::kMepic); }

TEST_F(CudaFaults, TheStepsUseEveryCallThatCanFail) {
  Engine engine = open_engine(config());
  auto calls = calls_of(engine, request(Method::kBlock));
  Request sampled = request(Method::kLazy);
  sampled.sampling.temperature = 1.0F;  // logits leave the GPU
  const auto more = calls_of(engine, sampled);
  for (int kind = 0; kind < kNumCudaCalls; ++kind) {
    const auto call = static_cast<CudaCall>(kind);
    if (call == CudaCall::kMemset) continue;  // only memory that lasts is cleared
    EXPECT_GT(calls[static_cast<size_t>(kind)] + more[static_cast<size_t>(kind)], 0)
        << name_of(call) << ": the tests above do not test it";
  }
}

TEST_F(CudaFaults, InACopyOfLogitsFailTheRequestOnly) {
  Engine engine = open_engine(config());
  Request sampled = request(Method::kLazy);
  sampled.sampling.temperature = 1.0F;
  fail_cuda_call(CudaCall::kMemcpy2DAsync, 3);
  const Answer failed = run(engine, sampled);
  EXPECT_EQ(failed.finish_reason, FinishReason::kError);
  EXPECT_EQ(failed.token_ids.size(), 3U);
  EXPECT_EQ(run(engine, sampled).finish_reason, FinishReason::kLength);
  expect_idle(engine);
}

TEST_F(CudaFaults, FailAllRequestsOfTheStepAndNoLaterOnes) {
  Engine engine = open_engine(config());
  std::vector<Stream> streams;
  for (const Method method : {Method::kLazy, Method::kBlock, Method::kPrefix}) {
    streams.push_back(submit(engine, request(method, 7, 3000)));
  }
  for (Stream& stream : streams) stream.next();  // all are running
  fail_cuda_call(CudaCall::kGraphLaunch, 2);
  for (Stream& stream : streams) {
    const Answer answer = wait_for(stream);
    EXPECT_EQ(answer.finish_reason, FinishReason::kError);
    EXPECT_THAT(answer.error, HasSubstr("a recorded step"));
  }
  expect_idle(engine);
  EXPECT_EQ(run(engine, request(Method::kLazy, 7)).finish_reason, FinishReason::kLength);
}

TEST_F(CudaFaults, AtOpeningNameWhatWasAskedForAndWhatIsFree) {
  count_cuda_calls();
  static_cast<void>(open_engine(config()));
  const int64_t allocations = num_cuda_calls(CudaCall::kMalloc);
  ASSERT_GT(allocations, 10);
  for (int64_t i = 0; i < allocations; ++i) {
    SCOPED_TRACE(i);
    fail_cuda_call(CudaCall::kMalloc, i);
    const auto engine = Engine::open(config());
    ASSERT_FALSE(engine.ok());
    EXPECT_EQ(engine.status().code(), StatusCode::kResourceExhausted);
    EXPECT_THAT(engine.status().message(), testing::ContainsRegex("of [0-9]+ bytes: [0-9]+ of "
                                                                  "[0-9]+ bytes are free"));
  }
  for (const CudaCall call : {CudaCall::kMemset, CudaCall::kMemcpy}) {
    fail_cuda_call(call, 0);
    EXPECT_EQ(Engine::open(config()).status().code(), StatusCode::kInternal);
  }
  count_cuda_calls();
  EXPECT_TRUE(Engine::open(config()).ok());
}

TEST_F(CudaFaults, APoolThatNoGpuHoldsIsRefusedWithTheSizes) {
  EngineConfig too_large = config();
  too_large.kv_cache_bytes = int64_t{16} << 40;
  const Status status = Engine::open(too_large).status();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr("the KV pool of 17592186044416 bytes"));
  EXPECT_THAT(status.message(), HasSubstr("bytes are free"));
  EXPECT_THAT(status.message(), HasSubstr("--kv-cache"));
  EXPECT_TRUE(Engine::open(config()).ok());
}

}  // namespace
}  // namespace anyslot
