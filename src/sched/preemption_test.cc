#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "sched/test_harness.h"

namespace anyslot {
namespace {

class Preemption : public testing::TestWithParam<Method> {};
INSTANTIATE_TEST_SUITE_P(Methods, Preemption, testing::ValuesIn(kAllMethods),
                         [](const auto& method) { return std::string(method_name(method.param)); });

Prompt random_prompt(std::mt19937& random, Method method) {
  Prompt prompt{
      {},
      make_document(50 + static_cast<int>(random() % 9), 1 + static_cast<int>(random() % 20)),
      method,
      1 + static_cast<int>(random() % 70)};
  const auto count = random() % 4;
  for (uint64_t i = 0; i < count; ++i) {
    const int seed = static_cast<int>(random() % 5);
    prompt.documents.push_back(make_document(seed, 5 + 13 * seed));
  }
  if (random() % 2 == 0)
    prompt.text_between = make_document(40, 1 + static_cast<int>(random() % 25));
  prompt.recompute_first_block = method == Method::kMepic && random() % 2 == 0;
  return prompt;
}

// Every request gives the answer that it gives alone in a roomy pool, however often it had to start
// over.
TEST_P(Preemption, ResumesWithTheSameAnswer) {
  int64_t preemptions = 0;
  int64_t evictions = 0;
  for (uint32_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    std::vector<Prompt> prompts;
    for (int i = 0; i < 6; ++i) prompts.push_back(random_prompt(random, GetParam()));
    std::vector<Ids> alone;
    int64_t largest = 0;
    for (const Prompt& prompt : prompts) {
      Harness roomy(1000);
      alone.push_back(roomy.answer(prompt));
      largest = std::max(largest, roomy.largest_need);
    }
    Harness tight(largest, {6, 16 + static_cast<int>(random() % 60), false});
    std::vector<std::pair<uint64_t, int>> requests;  // id and choices
    for (const Prompt& prompt : prompts) {
      const int num_choices = random() % 3 == 0 ? 3 : 1;
      requests.emplace_back(tight.submit(prompt, num_choices), num_choices);
    }
    tight.run();
    for (size_t i = 0; i < prompts.size(); ++i) {
      for (int choice = 0; choice < requests[i].second; ++choice) {
        ASSERT_EQ(tight.answers.at(requests[i].first + static_cast<uint64_t>(choice)), alone[i])
            << "request " << i << " choice " << choice;
      }
    }
    preemptions += tight.scheduler().preemptions_total();
    evictions += tight.cache().stats().evictions_total;
  }
  EXPECT_GT(preemptions, 20);
  if (GetParam() != Method::kFull) {
    EXPECT_GT(evictions, 20);
  }
}

TEST(PreemptionTest, TakesTheNewestAndReportsNoHitsOfItsOwnMaking) {
  Harness tight(14, {8, 64, false});
  for (int i = 0; i < 4; ++i)
    tight.submit({{make_document(1, 20)}, make_document(10 + i, 20), Method::kLazy, 60});
  tight.run();
  EXPECT_GT(tight.scheduler().preemptions_total(), 0);
  for (uint64_t id = 1; id <= 4; ++id) EXPECT_EQ(tight.usages.at(id).cached_tokens, 0);
  EXPECT_EQ(tight.finished_order.front(), 1U) << "the oldest always finishes";
}

}  // namespace
}  // namespace anyslot
