// What takes memory in steps of a kind that has been seen before.

#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "allocation_counter.h"
#include "model/test_decoder.h"
#include "model/test_goldens.h"
#include "support/engine_support.h"

namespace anyslot {
namespace {

using testing_support::AllocationCounter;

/// oneDNN builds a table of the arguments on every call of dnnl_primitive_execute, for which it
/// takes memory a few times. Its interface has no way around that, so its calls are not ours.
constexpr const char* kOneDnn = "libdnnl";

std::vector<int32_t> some_tokens(int64_t count) {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < count; ++i) ids.push_back(static_cast<int32_t>(i * 37 % 1000 + 5));
  return ids;
}

TEST(AllocationCounter, CountsEveryWayToTakeMemory) {
  void* volatile memory = nullptr;  // or the compiler would leave the pairs out
  const AllocationCounter counter(kOneDnn);
  memory = std::malloc(8);
  std::free(memory);
  EXPECT_EQ(counter.count(), 1);
  int* volatile number = new int(1);
  delete number;
  EXPECT_EQ(counter.count(), 2);
  memory = std::aligned_alloc(64, 64);
  std::free(memory);
  EXPECT_EQ(counter.count(), 3);
  std::thread([&memory] {
    memory = std::calloc(1, 8);
    std::free(memory);
  }).join();
  EXPECT_GE(counter.count(), 5) << "the thread's state and what it asked for";
  EXPECT_EQ(counter.library_count(), 0);
}

/// Calls for memory in a later pass of the same step, the median of some: a thread takes its memory
/// with its first task, and on a busy machine that can be late.
int64_t count_calls(TestModel& model, const StepPlan& plan) {
  constexpr int kPasses = 11;
  std::vector<float> logits;
  std::vector<int64_t> counts;
  counts.reserve(kPasses);
  for (int pass = 0; pass < kPasses; ++pass) {
    const AllocationCounter counter(kOneDnn);
    const Status status = model.decoder->forward(plan, *model.kv, logits);
    const int64_t count = counter.count();
    EXPECT_TRUE(status.ok()) << status.message();
    if (pass > 1) counts.push_back(count);
  }
  std::ranges::nth_element(counts, counts.begin() + std::ssize(counts) / 2);
  return counts[counts.size() / 2];
}

class ForwardAllocations : public testing::TestWithParam<DType> {
 protected:
  int64_t count(const StepPlan& plan) { return count_calls(model_, plan); }

  TestModel model_{"cpu", GetParam(), ANYSLOT_MODEL_DIR};
};

TEST_P(ForwardAllocations, NoneInADecodeStep) {
  StepPlan plan;
  std::vector<TestSpan> spans;
  for (const int64_t length : {5, 40, 600}) {
    spans.push_back(model_.blocks.span(some_tokens(length)));
  }
  for (const TestSpan& span : spans) {
    add_sequence(plan, span, 0, span.size() - 1, span.size(), {}, sample_all);
  }
  EXPECT_EQ(count(plan), 0);
}

TEST_P(ForwardAllocations, NoneInAPrefillStep) {
  StepPlan plan;
  const TestSpan document = model_.blocks.span(some_tokens(100));
  const TestSpan raw = model_.blocks.span(some_tokens(50), 0, KeyForm::kRaw);
  const TestSpan text = model_.blocks.span(some_tokens(300));
  const auto is_last = [](int64_t i) { return i == 299; };
  add_sequence(plan, document, 0, 0, 100, {}, sample_none);
  add_sequence(plan, raw, 0, 0, 50, {}, sample_none);
  add_sequence(plan, text, 150, 0, 300,
               {placement_of(document, 0, 100), placement_of(raw, 100, 50)}, is_last);
  EXPECT_EQ(count(plan), 0);
}

TEST_P(ForwardAllocations, NoneInCopiesOfBlocks) {
  StepPlan plan;
  const TestSpan document = model_.blocks.span(some_tokens(100));
  const TestSpan copy = model_.blocks.span(some_tokens(100));
  for (size_t i = 0; i < document.blocks.size(); ++i) {
    plan.copies.push_back({document.blocks[i], copy.blocks[i], kBlockSize, 77});
  }
  EXPECT_EQ(count(plan), 0);
}

INSTANTIATE_TEST_SUITE_P(Cpu, ForwardAllocations,
                         testing::Values(DType::kBFloat16, DType::kFloat32),
                         [](const auto& dtype) { return std::string(dtype_name(dtype.param)); });

TEST(FamilyAllocations, NoneInAStep) {
  for (const char* name : kGoldenModels) {
    SCOPED_TRACE(name);
    TestModel model("cpu", DType::kBFloat16, golden_dir(name));
    const Golden golden(name);
    const TestSpan span = model.blocks.span(golden.token_ids);
    StepPlan plan;
    add_sequence(plan, span, 0, 0, span.size(), {}, [](int64_t i) { return i % 9 == 0; });
    EXPECT_EQ(count_calls(model, plan), 0);
  }
}

/// Calls for memory from the request's submission until its last token, none of which is read.
int64_t count_answer(Engine& engine, int max_tokens) {
  Request request;
  request.segments = {testing_support::document_segment(some_tokens(100)),
                      testing_support::text_segment(some_tokens(21))};
  request.sampling.max_tokens = max_tokens;
  request.sampling.ignore_eos = true;
  const int64_t tokens_before = engine.stats().generated_tokens_total;
  const AllocationCounter counter(kOneDnn);
  Stream stream = testing_support::submit(engine, request);
  while (engine.stats().generated_tokens_total < tokens_before + max_tokens) {
    std::this_thread::yield();
  }
  const int64_t count = counter.count();
  EXPECT_EQ(testing_support::wait_for(stream).usage.completion_tokens, max_tokens);
  return count;
}

// What is left is for the user: an event per token with its list of token ids, in the queue of a
// stream that nobody reads meanwhile. And for the cache: an entry, with its key, per full block.
TEST(EngineAllocations, OfADecodeStepAreItsEvents) {
  EngineConfig config;
  config.model_path = ANYSLOT_MODEL_DIR;
  Engine engine = testing_support::open_engine(config);
  constexpr int kShort = 9;
  constexpr int kTokens = 160;
  for (const int tokens : {kShort + kTokens, kShort}) count_answer(engine, tokens);
  const int64_t least = count_answer(engine, kShort);
  const int64_t count = count_answer(engine, kShort + kTokens) - least;
  RecordProperty("per_token", std::to_string(static_cast<double>(count) / kTokens));
  EXPECT_LE(count, 2 * kTokens);
}

int64_t bytes_in_use() {
  const struct mallinfo2 info = mallinfo2();
  return static_cast<int64_t>(info.uordblks + info.hblkhd);
}

/// Bytes that a request takes while it waits for the engine's thread.
int64_t count_waiting(Engine& engine, const Request& request) {
  int64_t bytes = 0;
  std::optional<Stream> stream;
  const auto submit = [&] {
    const int64_t before = bytes_in_use();
    stream.emplace(testing_support::submit(engine, request));
    bytes = bytes_in_use() - before;
  };
  testing_support::run_between_steps(engine, [&](internal::StepLoop&) { submit(); });
  stream->cancel();
  testing_support::wait_for(*stream);
  return bytes;
}

// Queues are bounded in requests, so a request must not grow with its number of choices.
TEST(EngineAllocations, ChoicesThatWaitShareWhatTheRequestBrought) {
  EngineConfig config;
  config.model_path = ANYSLOT_MODEL_DIR;
  config.method = Method::kLazy;
  config.kv_cache_bytes = int64_t{256} << 20;
  Engine engine = testing_support::open_engine(config);
  Request request;
  for (int64_t i = 0; i < 20; ++i) {
    request.segments.push_back(testing_support::document_segment(some_tokens(50 + i)));
    request.segments.back().id = std::string(kMaxIdBytes, 'x');
  }
  request.segments.push_back(testing_support::text_segment(some_tokens(400)));
  SamplingParams& sampling = request.sampling;
  sampling.max_tokens = 500;
  for (int32_t id = 0; id < 1000; ++id) {
    sampling.logit_bias[id] = 1;
    sampling.stop_token_ids.push_back(id);
  }
  for (int i = 0; i < 64; ++i) sampling.stop.push_back(std::to_string(i) + std::string(1000, 'x'));
  count_waiting(engine, request);
  const int64_t alone = count_waiting(engine, request);
  EXPECT_GT(alone, 64 * 1000);
  sampling.n = 128;
  const int64_t per_choice = (count_waiting(engine, request) - alone) / 127;
  RecordProperty("bytes_per_choice", std::to_string(per_choice));
  EXPECT_LT(per_choice, 2048);
}

}  // namespace
}  // namespace anyslot
