// What the scheduler reports as read is what the attention plan reads.

#include <gtest/gtest.h>

#include <numeric>

#include "backend/attention_plan.h"
#include "sched/scheduler.h"

namespace anyslot {
namespace {

constexpr int kRequests = 8;

std::unique_ptr<Sequence> make_sequence(uint64_t id, Method method) {
  std::vector<int32_t> document(500);
  std::iota(document.begin(), document.end(), 0);
  std::vector<TokenSegment> segments{
      {SegmentKind::kDocument, document, "", 0},
      {SegmentKind::kText, {900, static_cast<int32_t>(901 + id)}, "", -1}};
  auto given = std::make_shared<const GivenRequest>(
      expand_prompt(segments, method_traits(method, false), {}, ""));
  auto sequence = std::move(make_choices(std::move(given), 1).front());
  sequence->id = id;
  return sequence;
}

// The plan of the first step in which all requests decode.
StepPlan decode_step(Scheduler& scheduler, Method method) {
  for (uint64_t id = 1; id <= kRequests; ++id) scheduler.submit(make_sequence(id, method));
  StepPlan plan;
  for (;;) {
    EXPECT_TRUE(scheduler.plan_step(plan));
    if (plan.rows.size() == kRequests && plan.copies.empty() && plan.rows.back().sample)
      return plan;
    scheduler.commit_step();
    for (const SampleTarget& target : scheduler.sample_targets())
      scheduler.append_token(*target.sequence, 7);
  }
}

AttentionPlan plan_all_rows(const StepPlan& plan, int64_t window = 0) {
  std::vector<int32_t> rows(plan.rows.size());
  std::iota(rows.begin(), rows.end(), 0);
  return plan_attention(plan, rows, window, {});
}

TEST(SharedReads, TheSchedulersCountIsTheAttentionPlans) {
  for (const Method method : {Method::kLazy, Method::kBlock, Method::kMepic, Method::kFull}) {
    KvCache cache(2000);
    Scheduler scheduler({kRequests, 8192, false, {}}, cache);
    const StepPlan plan = decode_step(scheduler, method);
    const bool shared = method == Method::kLazy || method == Method::kMepic;
    EXPECT_EQ(plan.kv_tokens_read, (shared ? 500 : kRequests * 500) + kRequests * 3)
        << method_name(method);
    EXPECT_EQ(plan_all_rows(plan).kv_tokens_read, plan.kv_tokens_read) << method_name(method);
    StepPlan alone = plan;
    alone.share_rows = false;
    EXPECT_EQ(plan_all_rows(alone).kv_tokens_read, kRequests * 503);
  }
}

// A row at 502 with a window of 100 sees from 403 on, and reads from the block that begins at 400.
TEST(SharedReads, AWindowBoundsWhatIsRead) {
  constexpr int64_t kWindow = 100;
  for (const Method method : {Method::kLazy, Method::kBlock, Method::kMepic, Method::kFull}) {
    KvCache cache(2000);
    Scheduler scheduler({kRequests, 8192, false, {kWindow, kWindow}}, cache);
    const StepPlan plan = decode_step(scheduler, method);
    const bool shared = method == Method::kLazy || method == Method::kMepic;
    const int64_t read = (shared ? kWindow : kRequests * kWindow) + kRequests * 3;
    EXPECT_EQ(plan.kv_tokens_read, read) << method_name(method);
    EXPECT_EQ(plan_all_rows(plan, kWindow).kv_tokens_read, read) << method_name(method);

    KvCache other_cache(2000);
    Scheduler mixed({kRequests, 8192, false, {kWindow, 0, kWindow, kWindow}}, other_cache);
    const StepPlan mixed_plan = decode_step(mixed, method);
    const int64_t whole = (shared ? 500 : kRequests * 500) + kRequests * 3;
    EXPECT_EQ(mixed_plan.kv_tokens_read, (3 * read + whole) / 4) << method_name(method);
  }
}

}  // namespace
}  // namespace anyslot
