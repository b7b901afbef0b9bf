// Documents that are encoded ahead, pinned, or given a time to live.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "sched/test_harness.h"

namespace anyslot {
namespace {

using testing::HasSubstr;

TokenSegment given(int seed, int length, bool pin = false) {
  TokenSegment document{SegmentKind::kDocument, make_document(seed, length),
                        "d" + std::to_string(seed), 0};
  document.pin = pin;
  return document;
}

std::vector<std::unique_ptr<Sequence>> choices_of(uint64_t id,
                                                  const std::vector<TokenSegment>& documents,
                                                  int num_choices, int max_tokens = 5) {
  std::vector<TokenSegment> segments = documents;
  segments.push_back({SegmentKind::kText, make_document(90, 4), "", -1});
  auto normal = normalize_segments(std::move(segments));
  EXPECT_TRUE(normal.ok());
  GivenRequest given = expand_prompt(*normal, method_traits(Method::kLazy, false), {}, "");
  given.sampling.max_tokens = max_tokens;
  auto choices = make_choices(std::make_shared<const GivenRequest>(std::move(given)), num_choices);
  for (auto& choice : choices) {
    choice->request_id = id;
    choice->id = id + static_cast<uint64_t>(choice->choice);
  }
  return choices;
}

std::unique_ptr<Sequence> request(uint64_t id, const std::vector<TokenSegment>& documents) {
  return std::move(choices_of(id, documents, 1).front());
}

int64_t rows_of_document(const Harness& harness, int seed) {
  return std::ranges::count_if(
      harness.device.views, [seed](const auto& view) { return view.row.token_id / 1000 == seed; });
}

class EncodedAhead : public testing::TestWithParam<Method> {};
INSTANTIATE_TEST_SUITE_P(Methods, EncodedAhead,
                         testing::Values(Method::kLazy, Method::kBlock, Method::kMepic),
                         [](const auto& method) { return std::string(method_name(method.param)); });

TEST_P(EncodedAhead, IsFoundByTheRequestThatComesLater) {
  Harness harness(100, {8, 30, false});
  const uint64_t id = harness.submit_document(given(1, 100), GetParam());
  harness.run();
  EXPECT_EQ(rows_of_document(harness, 1), 100);
  const EndedSequence& ended = harness.ended.at(id);
  EXPECT_TRUE(ended.status.ok());
  EXPECT_EQ(ended.document.id, "d1");
  EXPECT_EQ(ended.document.num_tokens, 100);
  EXPECT_EQ(ended.document.num_blocks, 7);
  EXPECT_FALSE(ended.document.encoding);
  EXPECT_EQ(ended.document.hits, 0);
  const uint64_t later = harness.submit({{make_document(1, 100)}, make_document(9, 4), GetParam()});
  harness.run();
  EXPECT_EQ(rows_of_document(harness, 1), 100);
  EXPECT_EQ(harness.usages.at(later).documents[0].source, DocumentSource::kPool);
  EXPECT_EQ(harness.cache().documents(owner_of(""))[0].hits, 1);
}

TEST_P(EncodedAhead, IsEncodedOnceForAllWhoWantIt) {
  Harness harness(100, {8, 30, false});
  const uint64_t first = harness.submit_document(given(1, 100), GetParam());
  const uint64_t second = harness.submit_document(given(1, 100), GetParam());
  ASSERT_TRUE(harness.step());
  ASSERT_EQ(harness.cache().documents(owner_of("")).size(), 1U);
  EXPECT_TRUE(harness.cache().documents(owner_of(""))[0].encoding);
  const uint64_t joining =
      harness.submit({{make_document(1, 100)}, make_document(9, 4), GetParam()});
  harness.run();
  EXPECT_EQ(rows_of_document(harness, 1), 100);
  EXPECT_TRUE(harness.ended.at(first).status.ok());
  EXPECT_TRUE(harness.ended.at(second).status.ok());
  EXPECT_EQ(harness.usages.at(joining).documents[0].source, DocumentSource::kJoined);
  EXPECT_EQ(harness.usages.at(joining).cached_tokens, 0);
}

TEST(KeptDocuments, GivesWayToARequestThatCameLater) {
  Harness harness(400, {8, 30, false});
  for (int i = 1; i <= 4; ++i) harness.submit_document(given(i, 300));
  ASSERT_TRUE(harness.step());
  const uint64_t later = harness.submit({{}, make_document(9, 60), Method::kLazy, 3});
  while (!harness.answers.contains(later)) ASSERT_TRUE(harness.step());
  // Two steps for its prompt and two for the other tokens, of 30 tokens each.
  for (int seed = 2; seed <= 4; ++seed) EXPECT_EQ(rows_of_document(harness, seed), 0);
  harness.run();
  EXPECT_EQ(harness.ended.size(), 4U);
}

/// Registers as many documents as `count`, of 20 blocks each, from seed 10 on.
void register_many(Harness& harness, int count) {
  for (int i = 0; i < count; ++i) harness.submit_document(given(10 + i, 20 * kBlockSize));
}

int steps_until_answered(Harness& harness, uint64_t id) {
  int steps = 0;
  while (!harness.answers.contains(id) && harness.step()) ++steps;
  return steps;
}

TEST(KeptDocuments, HoweverManyThereAreAnAnswerStartsAtOnce) {
  Harness harness(4000, {8, 30, false});
  register_many(harness, 100);
  ASSERT_TRUE(harness.step());
  EXPECT_EQ(harness.scheduler().num_running(), 2) << "a quarter of the slots for answers";
  std::vector<uint64_t> ids;
  for (int i = 0; i < 8; ++i) {
    ids.push_back(harness.submit({{}, make_document(200 + i, 3), Method::kLazy, 3}));
  }
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(harness.step());
  for (const uint64_t id : ids) EXPECT_TRUE(harness.answers.contains(id));
  harness.run();
  EXPECT_EQ(harness.ended.size(), 100U);
}

TEST(KeptDocuments, OneThatDoesNotFitDoesNotStandInTheWayOfAnswers) {
  Harness harness(40, {8, 30, false});
  const uint64_t first = harness.submit({{make_document(1, 16 * 25)}, {77}, Method::kLazy, 60});
  ASSERT_TRUE(harness.step());
  harness.submit_document(given(2, 30 * kBlockSize));
  ASSERT_TRUE(harness.step());
  const uint64_t later = harness.submit({{}, make_document(9, 20), Method::kLazy, 3});
  EXPECT_LE(steps_until_answered(harness, later), 20);
  EXPECT_FALSE(harness.answers.contains(first));
  harness.run();
  EXPECT_EQ(harness.ended.size(), 1U);
}

TEST(KeptDocuments, GivesItsRoomToAnAnswerThatNeedsIt) {
  Harness harness(45, {8, 30, false});
  register_many(harness, 2);
  ASSERT_TRUE(harness.step());
  const uint64_t later = harness.submit({{}, make_document(9, 16 * 8), Method::kLazy, 3});
  EXPECT_EQ(steps_until_answered(harness, later), 5 + 2);
  EXPECT_EQ(harness.scheduler().preemptions_total(), 1) << "no more than it needs";
  harness.run();
  EXPECT_EQ(harness.ended.size(), 2U);
  EXPECT_EQ(rows_of_document(harness, 10), 320) << "the newest goes first";
}

TEST(KeptDocuments, KeepsItsRoomWhenThatDoesNotLetTheAnswerIn) {
  Harness harness(60, {8, 30, false});
  harness.submit({{}, make_document(8, 16 * 30), Method::kLazy, 30});
  ASSERT_TRUE(harness.step());
  harness.submit_document(given(10, 20 * kBlockSize));
  ASSERT_TRUE(harness.step());
  harness.submit({{}, make_document(9, 16 * 40), Method::kLazy, 3});
  harness.run();
  EXPECT_EQ(harness.scheduler().preemptions_total(), 0);
  EXPECT_EQ(harness.answers.size(), 2U);
}

TEST(KeptDocuments, SeveralOfOneDocumentGiveWayTogether) {
  Harness harness(30, {16, 30, false});
  for (int i = 0; i < 3; ++i) harness.submit_document(given(10, 20 * kBlockSize));
  ASSERT_TRUE(harness.step());
  const uint64_t later = harness.submit({{}, make_document(9, 16 * 15), Method::kLazy, 3});
  EXPECT_EQ(steps_until_answered(harness, later), 8 + 2);
  EXPECT_EQ(harness.scheduler().preemptions_total(), 3);
  harness.run();
  EXPECT_EQ(harness.ended.size(), 3U);
}

TEST(KeptDocuments, AnAnswerJoinsTheEncodingThatItNeeds) {
  Harness harness(30, {8, 30, false});
  harness.submit_document(given(10, 20 * kBlockSize));
  ASSERT_TRUE(harness.step());
  const uint64_t later =
      harness.submit({{make_document(10, 20 * kBlockSize)}, make_document(9, 16 * 5)});
  harness.run();
  EXPECT_EQ(rows_of_document(harness, 10), 320);
  EXPECT_EQ(harness.usages.at(later).documents[0].source, DocumentSource::kJoined);
  EXPECT_EQ(harness.scheduler().preemptions_total(), 0);
}

TEST(KeptDocuments, AnAnswerThatGrowsIsNotPreemptedForAnOlderRegistration) {
  Harness harness(24, {4, 5, false});
  harness.submit_document(given(10, 20 * kBlockSize));
  ASSERT_TRUE(harness.step());
  for (int i = 0; i < 2; ++i) {
    harness.submit({{}, make_document(90 + i, 10), Method::kLazy, 80});
  }
  harness.run();
  EXPECT_EQ(harness.scheduler().preemptions_total(), 1);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(rows_of_document(harness, 90 + i), 10);
  EXPECT_EQ(harness.ended.size(), 1U);
}

// Answers are those of a roomy pool, whatever is registered, given up and preempted beside them.
TEST(KeptDocuments, RandomRegistrationsDisturbNoAnswer) {
  int64_t preemptions = 0;
  for (uint32_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    Harness tight(24, {4, 9, false});
    std::vector<std::pair<uint64_t, Prompt>> answers;
    std::vector<uint64_t> registered;
    for (int i = 0; i < 30; ++i) {
      const int document = static_cast<int>(random() % 5);
      const Ids tokens = make_document(document, 20 + 30 * document);
      if (random() % 2 == 0) {
        registered.push_back(tight.submit_document(given(document, 20 + 30 * document)));
      } else {
        const Prompt prompt{
            {tokens}, make_document(50 + i, 5), Method::kLazy, 1 + static_cast<int>(random() % 60)};
        answers.emplace_back(tight.submit(prompt), prompt);
      }
      if (random() % 8 == 0 && !registered.empty()) {
        tight.scheduler().remove(registered.back());
        registered.pop_back();
      }
      for (auto steps = random() % 6; steps > 0; --steps) tight.step();
    }
    tight.run();
    for (const auto& [id, prompt] : answers) {
      ASSERT_EQ(tight.answers.at(id), Harness(1000).answer(prompt)) << "request " << id;
    }
    for (const uint64_t id : registered) ASSERT_TRUE(tight.ended.at(id).status.ok());
    preemptions += tight.scheduler().preemptions_total();
  }
  EXPECT_GT(preemptions, 50);
}

TEST(KeptDocuments, OneThatIsReadyTakesNoStepAndMakesRoomForTheNext) {
  Harness harness(100, {1, 30, false});
  harness.submit_document(given(1, 20));
  harness.run();
  std::vector<uint64_t> ids;
  for (int i = 0; i < 3; ++i) ids.push_back(harness.submit_document(given(1, 20)));
  EXPECT_FALSE(harness.step());
  for (const uint64_t id : ids) EXPECT_TRUE(harness.ended.at(id).status.ok());
}

TEST(KeptDocuments, APreemptedEncodingStartsOver) {
  // At four tokens a step, the request needs a third block before the document is done.
  Harness harness(12, {4, 5, false});
  harness.submit({{}, make_document(9, 10), Method::kLazy, 150});
  ASSERT_TRUE(harness.step());
  const uint64_t id = harness.submit_document(given(1, 10 * kBlockSize));
  harness.run();
  EXPECT_GT(harness.scheduler().preemptions_total(), 0);
  EXPECT_TRUE(harness.ended.at(id).status.ok());
}

TEST(KeptDocuments, CancelledBeforeItIsReadyLeavesNeitherDocumentNorPin) {
  Harness harness(100, {8, 16, false});
  const uint64_t id = harness.submit_document(given(1, 100, true));
  ASSERT_TRUE(harness.step());
  EXPECT_EQ(harness.cache().stats().pinned_blocks, 7);
  ASSERT_NE(harness.scheduler().remove(id), nullptr);
  EXPECT_EQ(harness.cache().stats().pinned_blocks, 0);
  EXPECT_EQ(harness.cache().stats().free_blocks, 100);
  EXPECT_TRUE(harness.scheduler().check_integrity().ok());
}

TEST(KeptDocuments, APinIsMadeAgainAfterThePreemptionThatDroppedIt) {
  // The first request grows until the second, whose pinned document is not ready, must go.
  Harness harness(17, {2, 3, false});
  harness.submit({{}, make_document(9, 4), Method::kLazy, 250});
  ASSERT_TRUE(harness.step());
  Scheduler& scheduler = harness.scheduler();
  scheduler.submit(request(100, {given(1, 120, true), given(2, 110)}));
  ASSERT_TRUE(harness.step());
  EXPECT_EQ(harness.cache().stats().pinned_blocks, 8);
  harness.run();
  EXPECT_GT(harness.scheduler().preemptions_total(), 0);
  EXPECT_EQ(harness.cache().stats().pinned_blocks, 8);
  EXPECT_EQ(harness.answers.at(100).size(), 5U);
}

TEST(KeptDocuments, WhatCannotBePinnedIsRefusedWithAllItsChoices) {
  Harness harness(40);
  Scheduler& scheduler = harness.scheduler();
  for (auto& choice : choices_of(1, {given(1, 16 * 21, true)}, 3)) {
    scheduler.submit(std::move(choice));
  }
  scheduler.submit(request(10, {given(2, 20, true), given(2, 20, true)}));
  harness.run();
  ASSERT_EQ(harness.ended.size(), 1U);
  const Status& status = harness.ended.at(1).status;
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr("pinning takes 21 blocks, and 0 are pinned"));
  EXPECT_EQ(harness.answers.at(10).size(), 5U) << "others are served";
  EXPECT_EQ(harness.cache().stats().pinned_blocks, 2) << "a document named twice is pinned once";
}

TEST(KeptDocuments, WhatPinsLeaveNoRoomForIsRefusedWhenNothingElseRuns) {
  Harness harness(40);
  Scheduler& scheduler = harness.scheduler();
  scheduler.submit(request(1, {given(1, 16 * 20, true)}));
  scheduler.submit(request(2, {given(2, 16 * 20)}));
  scheduler.submit(request(3, {given(3, 16 * 10)}));
  harness.run();
  EXPECT_EQ(harness.answers.at(1).size(), 5U);
  EXPECT_THAT(harness.ended.at(2).status.message(),
              HasSubstr("needs 21 KV blocks, but pinned documents leave 20 of 40"));
  EXPECT_EQ(harness.answers.at(3).size(), 5U);
}

TEST(KeptDocuments, ATimeToLiveIsSetByTheRequestAndKeptByOthers) {
  Harness harness(100);
  TokenSegment timed = given(1, 20);
  timed.ttl_seconds = 10;
  harness.scheduler().submit(request(1, {timed}));
  harness.run();
  const auto time_left = [&] { return harness.cache().documents(owner_of(""))[0].time_left; };
  EXPECT_EQ(time_left(), 10 * kTicksPerSecond);
  harness.cache().set_tick(4000);
  harness.scheduler().submit(request(2, {given(1, 20)}));
  EXPECT_EQ(time_left(), 6 * kTicksPerSecond);
  harness.run();
  EXPECT_EQ(time_left(), 10 * kTicksPerSecond);
  timed.ttl_seconds = 0;
  harness.scheduler().submit(request(3, {timed}));
  harness.run();
  EXPECT_EQ(time_left(), std::nullopt);
}

TEST(KeptDocuments, RequestsAreNewlyAdmittedOnce) {
  Harness harness(14, {8, 64, false});
  for (int i = 0; i < 4; ++i)
    harness.submit({{make_document(1, 20)}, make_document(10 + i, 20), Method::kLazy, 60}, 2);
  harness.submit_document(given(1, 20));
  std::vector<uint64_t> admitted;
  bool more = true;
  while (more) {
    more = harness.step();
    for (const Sequence* sequence : harness.scheduler().newly_admitted())
      admitted.push_back(sequence->id);
  }
  EXPECT_GT(harness.scheduler().preemptions_total(), 0);
  EXPECT_EQ(admitted, (std::vector<uint64_t>{1, 3, 5, 7}));
}

}  // namespace
}  // namespace anyslot
