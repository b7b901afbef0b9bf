// What memory that does not suffice leaves of the scheduler's books.

#include <gtest/gtest.h>

#include <new>
#include <random>

#include "failing_allocation.h"
#include "sched/test_harness.h"

namespace anyslot {
namespace {

using testing_support::FailingAllocation;

class MemoryFailure : public testing::TestWithParam<Method> {};
INSTANTIATE_TEST_SUITE_P(Methods, MemoryFailure, testing::ValuesIn(kAllMethods),
                         [](const auto& method) { return std::string(method_name(method.param)); });

/// Whether `work` throws when it cannot have the memory that it asks for after so many times.
template <typename Work>
bool fails(int64_t after, const Work& work) {
  const FailingAllocation failing(after);
  bool failed = false;
  try {
    work();
  } catch (const std::bad_alloc&) {
    failed = true;
  }
  EXPECT_EQ(failing.has_failed(), failed) << "it must be told";
  return failed;
}

// Whoever drives the scheduler then removes everything, and goes on.
TEST_P(MemoryFailure, AtAnyMomentLeavesNothingBehindWhenAllIsRemoved) {
  const Prompt prompt{{make_document(1, 40), make_document(2, 20), make_document(1, 40)},
                      make_document(9, 20),
                      GetParam(),
                      20};
  const Ids expected = Harness(1000).answer(prompt);
  int64_t failures = 0;
  for (uint32_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    Harness harness(40, {4, 30, false});
    for (auto answers = random() % 2; answers > 0; --answers) harness.answer(prompt);
    const uint64_t last = harness.submit(prompt, 3) + 2;
    if (GetParam() != Method::kPrefix && GetParam() != Method::kFull) {
      TokenSegment document{SegmentKind::kDocument, make_document(2, 20), "d", 0};
      document.pin = true;
      document.ttl_seconds = 5;
      harness.submit_document(document, GetParam());
    }
    for (auto steps = random() % 6; steps > 0; --steps) harness.step();
    Scheduler& scheduler = harness.scheduler();
    const auto after = static_cast<int64_t>(random() % 40);
    bool failed = false;
    if (random() % 3 > 0) {
      failed = fails(after, [&] { scheduler.plan_step(harness.plan); });
    } else if (scheduler.plan_step(harness.plan)) {
      harness.device.run(harness.plan);
      failed = fails(after, [&] { scheduler.commit_step(); });
    }
    failures += failed ? 1 : 0;
    for (uint64_t id = 1; id <= last + 1; ++id) scheduler.remove(id);
    static_cast<void>(scheduler.take_ended());
    const Status status = scheduler.check_integrity();
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(scheduler.num_running() + scheduler.num_waiting(), 0);
    EXPECT_EQ(harness.cache().stats().referenced_entries, 0);
    EXPECT_EQ(harness.cache().stats().private_blocks, 0);
    if (failed) {
      EXPECT_EQ(harness.answer(prompt), expected);
    }
  }
  EXPECT_GT(failures, 30);
}

}  // namespace
}  // namespace anyslot
