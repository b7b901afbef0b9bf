// Memory that does not suffice on the engine's thread costs requests, at worst those that run, and
// never the engine.

#include <gtest/gtest.h>

#include <future>
#include <optional>
#include <vector>

#include "failing_allocation.h"
#include "support/engine_support.h"
#include "support/random_model.h"

namespace anyslot {
namespace {

using namespace testing_support;

Request make_request(uint64_t seed, int choices) {
  Request request;
  request.segments = {document_segment(random_tokens(20, seed)),
                      text_segment(random_tokens(20, seed + 50))};
  request.sampling.max_tokens = 5;
  request.sampling.n = choices;
  request.sampling.logprobs = true;
  return request;
}

// The reference backend, since oneDNN takes memory in its own ways.
TEST(MemoryFailure, LeavesTheEngineServing) {
  const TemporaryModel model(RandomModel{.hidden_size = 32, .num_layers = 1});
  EngineConfig config = float32_config(model.path());
  config.device = "reference";
  config.kv_cache_bytes = int64_t{1} << 20;
  Engine engine = open_engine(config);
  const Answer expected = run(engine, make_request(1, 1));
  int failed = 0;
  for (int64_t after = 0; after < 400; ++after) {
    SCOPED_TRACE(testing::Message() << "failure after " << after << " allocations");
    std::vector<Stream> streams;
    std::promise<Status> registered;
    run_between_steps(engine, [&](internal::StepLoop&) {
      for (const int choices : {1, 2}) {
        streams.push_back(submit(engine, make_request(static_cast<uint64_t>(after), choices)));
      }
      Segment document = document_segment(random_tokens(30, static_cast<uint64_t>(after) + 500));
      document.ttl_seconds = 1000;
      engine.register_document(document, {}, [&registered](const auto& cached) {
        registered.set_value(cached.status());
      });
      fail_allocation(after);
    });
    for (Stream& stream : streams) {
      for (const Answer& answer : wait_for_choices(stream)) {
        if (answer.finish_reason == FinishReason::kLength) {
          EXPECT_EQ(answer.token_ids.size(), 5U);
        } else {
          EXPECT_EQ(answer.finish_reason, FinishReason::kError);
          ++failed;
        }
      }
    }
    registered.get_future().wait();
    run_between_steps(engine, [](internal::StepLoop&) { fail_allocation(-1); });
    expect_idle(engine);
    if (HasFailure()) return;
  }
  EXPECT_GT(failed, 20);
  EXPECT_EQ(run(engine, make_request(1, 1)).token_ids, expected.token_ids);
}

}  // namespace
}  // namespace anyslot
