#include "sched/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "sched/test_harness.h"

namespace anyslot {
namespace {

using testing::HasSubstr;

class EveryMethod : public testing::TestWithParam<Method> {};
INSTANTIATE_TEST_SUITE_P(Methods, EveryMethod, testing::ValuesIn(kAllMethods),
                         [](const auto& method) { return std::string(method_name(method.param)); });

// The rows of the prompt's text and of the answer see every earlier token, at its true distance.
TEST_P(EveryMethod, EveryRowSeesTheWholePromptAtTrueDistances) {
  for (const int budget : {7, 33, 2048}) {
    Harness harness(1000, {8, budget, false});
    Prompt prompt{
        {make_document(1, 16), make_document(2, 1), make_document(3, 37), make_document(1, 16)},
        make_document(9, 21),
        GetParam(),
        20};
    const Ids answer = harness.answer(prompt);
    Ids tokens;
    for (const Ids& document : prompt.documents)
      tokens.insert(tokens.end(), document.begin(), document.end());
    tokens.insert(tokens.end(), prompt.question.begin(), prompt.question.end());
    const auto text_begin = static_cast<int64_t>(tokens.size() - prompt.question.size());
    tokens.insert(tokens.end(), answer.begin(), answer.end());
    int64_t next_position = text_begin;
    for (const auto& view : harness.device.views) {
      if (view.row.position < text_begin) continue;
      ASSERT_EQ(view.row.position, next_position++);
      ASSERT_EQ(static_cast<int64_t>(view.keys.size()), view.row.position + 1);
      for (size_t i = 0; i < view.keys.size(); ++i) {
        ASSERT_EQ(view.keys[i].token_id, tokens[i]) << "row " << view.row.position << ", key " << i;
        ASSERT_EQ(view.keys[i].distance, view.row.position - static_cast<int64_t>(i));
      }
    }
    EXPECT_EQ(next_position, static_cast<int64_t>(tokens.size()) - 1);
  }
}

TEST_P(EveryMethod, TheAnswerDoesNotDependOnThePoolOrTheBatch) {
  std::vector<Prompt> prompts;
  std::mt19937 random(7);
  for (int i = 0; i < 24; ++i) {
    Prompt prompt{{}, make_document(50 + i, 3 + i % 5), GetParam(), 12};
    for (int k = 0; k < 4; ++k) {
      const int seed = static_cast<int>(random() % 6);
      prompt.documents.push_back(make_document(seed, 10 + 9 * seed));
    }
    prompts.push_back(prompt);
  }
  std::vector<Ids> alone;
  int64_t largest = 0;
  for (const Prompt& prompt : prompts) {
    Harness harness(1000);
    alone.push_back(harness.answer(prompt));
    int64_t tokens = 64;
    for (const Ids& document : prompt.documents)
      tokens += static_cast<int64_t>(document.size() + 15) / 16 * 32;
    largest = std::max(largest, tokens / kBlockSize);
  }
  for (const int64_t num_blocks : {largest, largest + 9, int64_t{1000}}) {
    Harness harness(num_blocks, {16, 40, false});
    for (const Prompt& prompt : prompts) harness.submit(prompt);
    harness.run();
    for (size_t i = 0; i < prompts.size(); ++i) EXPECT_EQ(harness.answers.at(i + 1), alone[i]) << i;
    if (num_blocks == largest && GetParam() != Method::kFull) {
      EXPECT_GT(harness.cache().stats().evictions_total, 0);
    }
  }
}

TEST(Scheduler, EncodesADocumentThatSeveralMissOnce) {
  Harness harness(1000);
  for (int i = 0; i < 5; ++i) harness.submit({{make_document(1, 100)}, make_document(10 + i, 4)});
  harness.run();
  int64_t document_rows = 0;
  for (const auto& view : harness.device.views)
    document_rows += view.row.token_id / 1000 == 1 ? 1 : 0;
  EXPECT_EQ(document_rows, 100);
  EXPECT_EQ(harness.usages.at(1).documents[0].source, DocumentSource::kComputed);
  for (uint64_t id = 2; id <= 5; ++id) {
    EXPECT_EQ(harness.usages.at(id).documents[0].source, DocumentSource::kJoined);
    EXPECT_EQ(harness.usages.at(id).cached_tokens, 0);
  }
}

// The documents and the whole blocks of text are computed for all choices together.
TEST_P(EveryMethod, ChoicesShareThePrompt) {
  const int64_t kDocuments = 30 + 45;
  const int64_t kQuestion = 40;
  const int64_t prompt = kDocuments + kQuestion;
  Harness harness(1000);
  const Prompt given{
      {make_document(1, 30), make_document(2, 45)}, make_document(9, 40), GetParam()};
  const Ids alone = Harness(1000).answer(given);
  const uint64_t id = harness.submit(given, 4);
  harness.run();
  for (uint64_t choice = 0; choice < 4; ++choice) EXPECT_EQ(harness.answers.at(id + choice), alone);

  int64_t again = 0;  // prompt tokens that each further choice computes
  switch (GetParam()) {
    case Method::kLazy:
    case Method::kBlock:
    case Method::kMepic:
      again = kQuestion - 32;
      break;
    case Method::kPrefix:
      again = prompt - 112;
      break;
    case Method::kFull:
      again = prompt;
      break;
  }
  const int64_t decoded = 4 * (given.max_tokens - 1);
  EXPECT_EQ(std::ssize(harness.device.views), prompt + 3 * again + decoded);
  EXPECT_EQ(harness.usages.at(id).prompt_tokens, prompt);
  EXPECT_EQ(harness.usages.at(id).cached_tokens, 0);
}

TEST(Scheduler, FurtherChoicesThatWaitAreOvertaken) {
  Harness harness(1000, {8, 32, false});
  harness.submit({{}, make_document(1, 100)}, 3);  // its prompt takes several steps
  harness.submit({{}, make_document(2, 8)});
  harness.step();
  EXPECT_EQ(harness.scheduler().num_running(), 2);
  EXPECT_EQ(harness.scheduler().num_waiting(), 2);
  harness.run();
  EXPECT_EQ(harness.finished_order.size(), 4U);
}

TEST(Scheduler, FurtherChoicesStartWhenTheFirstIsRemoved) {
  Harness harness(1000, {8, 32, false});
  const uint64_t id = harness.submit({{make_document(1, 100)}, make_document(2, 8)}, 3);
  harness.step();
  EXPECT_EQ(harness.scheduler().num_running(), 1);
  harness.scheduler().remove(id);
  harness.run();
  EXPECT_EQ(harness.finished_order, (std::vector<uint64_t>{id + 1, id + 2}));
}

// To the eviction policy, a document of a request with n > 1 was used once: a flood of such
// requests is still a scan.
TEST(Scheduler, FurtherChoicesAreNoUsesOfADocument) {
  Harness harness(60);
  const Prompt popular{{make_document(1, 64)}, make_document(900, 3)};
  for (int i = 0; i < 4; ++i) harness.answer(popular);
  for (int i = 0; i < 100; ++i) {
    harness.submit({{make_document(10 + i, 64)}, make_document(901, 3)}, 4);
    harness.run();
  }
  const uint64_t id = harness.submit(popular);
  harness.run();
  EXPECT_EQ(harness.usages.at(id).cached_tokens, 64);
  EXPECT_GT(harness.cache().stats().evictions_total, 50);
}

TEST(Scheduler, ReusesDocumentsInAnyOrder) {
  Harness harness(1000);
  const Ids a = make_document(1, 40);
  const Ids b = make_document(2, 23);
  const Ids c = make_document(3, 55);
  harness.answer({{a, b}, {77}});
  const int64_t third = static_cast<int64_t>(c.size());
  const uint64_t second_id = harness.submit({{c, b, a}, {78}});
  harness.run();
  EXPECT_EQ(harness.usages.at(second_id).cached_tokens, 63);
  EXPECT_EQ(harness.cache().stats().document_entries, 3);
  const uint64_t third_id = harness.submit({{b, a, c}, {79}});
  harness.run();
  EXPECT_EQ(harness.usages.at(third_id).cached_tokens, 63 + third);
  EXPECT_EQ(harness.usages.at(third_id).documents[2].source, DocumentSource::kPool);
  EXPECT_EQ(harness.cache().stats().document_entries, 3);
}

TEST(Scheduler, PrefixReusesAnEqualHeadOnly) {
  Harness harness(1000);
  const Ids a = make_document(1, 40);
  const Ids b = make_document(2, 24);
  harness.answer({{a, b}, {77}, Method::kPrefix});
  const uint64_t same = harness.submit({{a, b}, {78}, Method::kPrefix});
  const uint64_t swapped = harness.submit({{b, a}, {78}, Method::kPrefix});
  const uint64_t full = harness.submit({{a, b}, {77}, Method::kFull});
  harness.run();
  EXPECT_EQ(harness.usages.at(same).cached_tokens, 64);
  EXPECT_EQ(harness.usages.at(same).documents[1].cached_tokens, 24);
  EXPECT_EQ(harness.usages.at(swapped).cached_tokens, 0);
  EXPECT_EQ(harness.usages.at(full).cached_tokens, 0);
}

TEST(Scheduler, TheLastTokenIsComputedEvenIfAllIsCached) {
  Harness harness(1000);
  const Prompt prompt{{}, make_document(1, 32), Method::kPrefix, 1};
  const Ids first = harness.answer(prompt);
  EXPECT_EQ(harness.answer(prompt), first);
  EXPECT_EQ(harness.usages.at(2).cached_tokens, 16);
}

TEST(Scheduler, BlockCopiesExactlyTheDocumentBlocksAndLazyNone) {
  const std::vector<Ids> documents{make_document(1, 33), make_document(2, 16), make_document(3, 1)};
  for (const Method method : {Method::kLazy, Method::kBlock}) {
    Harness harness(1000);
    harness.answer({documents, {77}, method});
    harness.submit({documents, {78}, method});
    size_t copies = 0;
    while (harness.step()) copies += harness.plan.copies.size();
    EXPECT_EQ(copies, method == Method::kBlock ? 3U + 1U + 1U : 0U);
  }
}

TEST(Scheduler, ADocumentSharedByEightIsReadOnce) {
  for (const Method method : {Method::kLazy, Method::kBlock}) {
    Harness harness(1000);
    for (int i = 0; i < 8; ++i)
      harness.submit({{make_document(1, 100)}, make_document(10 + i, 4), method, 3});
    while (harness.plan.rows.size() != 8 || !harness.plan.rows[7].sample)
      ASSERT_TRUE(harness.step());
    const int64_t text = 8 * 5;  // the question and the row itself
    EXPECT_EQ(harness.plan.kv_tokens_read, method == Method::kLazy ? 100 + text : 8 * 100 + text);
    harness.run();
  }
}

TEST(Scheduler, RawKeysAreReadOncePerStart) {
  Harness harness(1000);
  for (int i = 0; i < 4; ++i) {
    const Ids first = make_document(2 + i / 2, i / 2 == 0 ? 16 : 32);
    harness.submit({{first, make_document(1, 100)}, {7000 + i}, Method::kMepic, 2});
  }
  while (harness.plan.rows.size() != 4 || !harness.plan.rows[3].sample) ASSERT_TRUE(harness.step());
  EXPECT_EQ(harness.plan.kv_tokens_read, 16 + 32 + 2 * 100 + 4 * 2);
  harness.run();
}

TEST(Scheduler, MepicKeepsRawKeysAndRecomputesFirstBlocks) {
  Harness harness(1000);
  const Ids document = make_document(1, 40);
  Prompt prompt{{make_document(2, 20), document}, {77}, Method::kMepic, 2};
  prompt.recompute_first_block = true;
  harness.answer(prompt);
  int in_place = 0;
  for (const auto& view : harness.device.views) {
    EXPECT_TRUE(view.row.write_angle == 0 || view.row.position >= 60) << "document keys are raw";
    if (view.row.token_id / 1000 == 1 && view.keys.front().token_id / 1000 == 2) {
      EXPECT_LT(view.row.position, 20 + kBlockSize);
      ++in_place;
    }
  }
  EXPECT_EQ(in_place, 16);
}

TEST(Scheduler, SaltsAndMethodsKeepDocumentsApart) {
  Harness harness(1000);
  const Prompt prompt{{make_document(1, 40)}, {77}};
  harness.answer(prompt);
  Prompt salted = prompt;
  salted.salt = "tenant";
  Prompt raw = prompt;
  raw.method = Method::kMepic;
  Prompt copied = prompt;
  copied.method = Method::kBlock;
  harness.answer(salted);
  harness.answer(raw);
  harness.answer(copied);
  EXPECT_EQ(harness.usages.at(2).cached_tokens, 0);
  EXPECT_EQ(harness.usages.at(3).cached_tokens, 0);
  EXPECT_EQ(harness.usages.at(4).cached_tokens, 40) << "block copies the entries that lazy shares";
}

TEST(Scheduler, DecodeIsNotStarvedByLongDocuments) {
  Harness harness(4000, {8, 32, false});
  harness.submit({{make_document(1, 10)}, {77}, Method::kLazy, 40});
  while (harness.scheduler().sample_targets().empty()) ASSERT_TRUE(harness.step());
  harness.submit({{make_document(2, 900)}, {78}, Method::kLazy, 2});
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(harness.step());
    ASSERT_EQ(harness.scheduler().sample_targets().size(), 1U) << "step " << i;
    EXPECT_EQ(harness.plan.rows.size(), 32U) << "the budget is used up";
  }
  harness.run();
}

// Each is done behind the scheduler's back while something else runs.
TEST(Scheduler, CheckIntegrityNoticesEveryUseThatIsNotItsOwn) {
  Harness harness(100, {8, 20, false});
  harness.answer({{make_document(3, 40)}, make_document(8, 4)});
  harness.submit({{make_document(1, 10)}, make_document(9, 40), Method::kLazy, 30});
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(harness.step());
  harness.submit({{make_document(2, 200)}, make_document(9, 4)});
  ASSERT_TRUE(harness.step());
  KvCache& cache = harness.cache();
  const auto find = [&](int seed) {
    for (const Ids& ids : {make_document(seed, 10), make_document(seed, 200), make_document(3, 40)})
      if (CacheEntry* entry = cache.find(document_key({}, "alone, turned", "", ids))) return entry;
    return static_cast<CacheEntry*>(nullptr);
  };
  const auto message = [&] { return harness.scheduler().check_integrity().message(); };
  ASSERT_EQ(message(), "");
  for (const int seed : {1, 2, 3}) {
    CacheEntry* const entry = find(seed);
    ASSERT_NE(entry, nullptr);
    cache.acquire(*entry);
    EXPECT_THAT(message(), HasSubstr(seed == 3 ? "is used 0 times" : "is used 1 times"));
    cache.release(*entry);
    EXPECT_EQ(message(), "");
  }
  CacheEntry* const strange = cache.insert_encoding(owner_of("strange"), 5);
  EXPECT_THAT(message(), HasSubstr("is used 0 times"));
  cache.release(*strange);
  cache.mark_ready(*find(2));
  EXPECT_THAT(message(), HasSubstr("is ready, but a job encodes it"));
}

TEST(Scheduler, RemovalAtAnyMomentFreesEverything) {
  std::mt19937 random(3);
  for (int round = 0; round < 60; ++round) {
    Harness harness(60, {4, 24, false});
    for (int i = 0; i < 6; ++i) {
      const Method method = kAllMethods[random() % 5];
      harness.submit({{make_document(static_cast<int>(random() % 3), 30), make_document(4, 17)},
                      make_document(10 + i, 5),
                      method,
                      8});
    }
    const auto steps = static_cast<int>(random() % 12);
    for (int i = 0; i < steps; ++i) harness.step();
    for (uint64_t id = 1; id <= 6; id += 1 + random() % 2) harness.scheduler().remove(id);
    ASSERT_TRUE(harness.scheduler().check_integrity().ok()) << "round " << round;
    harness.run();
  }
}

}  // namespace
}  // namespace anyslot
