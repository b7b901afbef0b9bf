// A GPU that the process cannot use any more. Nothing can follow in this program.

#include <gmock/gmock.h>

#include <vector>

#include "cuda/fault_test_support.h"

namespace anyslot {
namespace {

using namespace testing_support;
using testing::HasSubstr;

class LostDevice : public CudaFaultTest {};

TEST_F(LostDevice, FailsAllRequestsAndTheEngineEnds) {
  Engine engine = open_engine(config());
  run(engine, request(Method::kLazy, 5));
  std::vector<Stream> streams;
  for (const Method method : {Method::kLazy, Method::kBlock, Method::kMepic, Method::kPrefix}) {
    streams.push_back(submit(engine, request(method, 7, 3000)));
  }
  for (Stream& stream : streams) stream.next();  // all are running
  break_next_launch();
  for (Stream& stream : streams) {
    const Answer answer = wait_for(stream);
    EXPECT_EQ(answer.finish_reason, FinishReason::kError);
    EXPECT_THAT(answer.error, HasSubstr("this process cannot use the GPU any more"));
  }
  expect_idle(engine);

  for (const uint64_t seed : {5, 7, 9}) {  // with documents in the pool and without
    const Answer answer = run(engine, request(Method::kLazy, seed));
    EXPECT_EQ(answer.finish_reason, FinishReason::kError);
    EXPECT_THAT(answer.error, HasSubstr("restart it"));
  }
  const auto document = engine.register_document(document_segment(random_tokens(50, 3)), {});
  EXPECT_FALSE(document.ok());
  EXPECT_THAT(document.status().message(), HasSubstr("restart it"));
  expect_idle(engine);

  const auto second = Engine::open(config());
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(second.status().message(), HasSubstr("illegal memory access"));
}

}  // namespace
}  // namespace anyslot
