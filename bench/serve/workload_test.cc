#include "workload.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "support/temporary_folder.h"

namespace anyslot::bench {
namespace {

std::vector<WorkloadRequest> made(const WorkloadOptions& options, int prompts, uint64_t seed,
                                  const TextTraits& traits = {}) {
  auto requests = make_workload(options, prompts, seed, traits);
  EXPECT_TRUE(requests.ok()) << requests.status().message();
  return requests.ok() ? *std::move(requests) : std::vector<WorkloadRequest>();
}

/// Everything of a workload that a target sees, as text.
std::string shown(const std::vector<WorkloadRequest>& requests) {
  std::string text;
  for (const WorkloadRequest& request : requests) {
    for (const auto& document : request.documents) text += document.id + "|" + document.text + "\n";
    for (const auto& message : request.messages) text += message.content + "\n";
    text += std::to_string(request.max_tokens) + "\n";
  }
  return text;
}

std::vector<std::string> ids_of(const WorkloadRequest& request) {
  std::vector<std::string> ids;
  for (const WorkloadDocument& document : request.documents) ids.push_back(document.id);
  return ids;
}

WorkloadOptions small_pool() {
  WorkloadOptions options;
  options.num_documents = 20;
  options.documents_per_prompt = 4;
  options.document_len = 30;
  options.question_len = 5;
  return options;
}

class WorkloadFile : public ::testing::Test {
 protected:
  WorkloadOptions of(WorkloadKind kind, const std::string& text) {
    WorkloadOptions options;
    options.kind = kind;
    options.output_len = 0;
    options.dataset_path = folder_.write("rows.jsonl", text);
    return options;
  }
  testing_support::TemporaryFolder folder_;
};

TEST(Workload, IsTheSameForTheSameSeed) {
  for (const WorkloadKind kind :
       {WorkloadKind::kRandom, WorkloadKind::kLongDocument, WorkloadKind::kMultiRound}) {
    WorkloadOptions options = small_pool();
    options.kind = kind;
    options.random_range_ratio = 0.5;
    const std::string first = shown(made(options, 12, 42));
    EXPECT_EQ(first, shown(made(options, 12, 42))) << workload_name(kind);
    EXPECT_NE(first, shown(made(options, 12, 43))) << workload_name(kind);
  }
}

TEST(Workload, KeepsItsFirstRequestsWhenMoreAreAsked) {
  const auto few = made(small_pool(), 5, 1);
  auto more = made(small_pool(), 9, 1);
  more.resize(5);
  EXPECT_EQ(shown(few), shown(more));
}

TEST(RandomWorkload, DrawsDifferentDocumentsAsOften) {
  std::map<std::string, int> drawn;
  for (const WorkloadRequest& request : made(small_pool(), 5000, 3)) {
    const auto ids = ids_of(request);
    EXPECT_EQ(std::set<std::string>(ids.begin(), ids.end()).size(), 4U);
    for (const std::string& id : ids) ++drawn[id];
  }
  double chi_square = 0;
  for (const auto& [id, count] : drawn) chi_square += (count - 1000.0) * (count - 1000.0) / 1000;
  EXPECT_EQ(drawn.size(), 20U);
  EXPECT_LT(chi_square, 43.8);  // 99.9%, 19 degrees; drawing without return varies less
}

TEST(RandomWorkload, DrawsByZipfsLaw) {
  WorkloadOptions options = small_pool();
  options.documents_per_prompt = 1;
  options.choice = DocumentChoice::kZipf;
  options.zipf = 2.1;
  std::vector<double> drawn(20, 0);
  constexpr int kPrompts = 20000;
  for (const WorkloadRequest& request : made(options, kPrompts, 5)) {
    ++drawn[std::stoul(request.documents[0].id.substr(1))];
  }
  double sum = 0;
  for (int rank = 1; rank <= 20; ++rank) sum += std::pow(rank, -2.1);
  double chi_square = 0;
  for (int rank = 1; rank <= 20; ++rank) {
    const double expected = kPrompts * std::pow(rank, -2.1) / sum;
    chi_square += (drawn[rank - 1] - expected) * (drawn[rank - 1] - expected) / expected;
  }
  EXPECT_LT(chi_square, 43.8);
}

TEST(RandomWorkload, KeepsAFixedOrderAndElseMakesNewOnes) {
  WorkloadOptions options = small_pool();
  options.documents_per_prompt = 20;
  const auto fresh = made(options, 2, 1);
  EXPECT_NE(ids_of(fresh[0]), ids_of(fresh[1]));
  options.order = DocumentOrder::kFixed;
  const auto fixed = made(options, 2, 1);
  EXPECT_EQ(ids_of(fixed[0]), ids_of(fixed[1]));
  EXPECT_EQ(fixed[0].documents[7].id, "d7");
}

TEST(RandomWorkload, HasLengthsInTokens) {
  TextTraits two_per_word;
  two_per_word.tokens_per_word = 2;
  const auto text = made(small_pool(), 1, 1, two_per_word);
  EXPECT_EQ(std::ranges::count(text[0].documents[0].text, ' '), 14);  // 15 words, 30 tokens
  TextTraits ids_only;
  ids_only.takes_text = false;
  ids_only.vocab_size = 10;
  const auto ids = made(small_pool(), 1, 1, ids_only);
  EXPECT_EQ(ids[0].documents[0].token_ids.size(), 30U);
  EXPECT_LT(*std::ranges::max_element(ids[0].documents[0].token_ids), 10);
}

TEST(RandomWorkload, RefusesMoreDocumentsThanItsPoolHas) {
  WorkloadOptions options = small_pool();
  options.documents_per_prompt = 21;
  EXPECT_EQ(make_workload(options, 1, 1, {}).status().code(), StatusCode::kInvalidArgument);
}

TEST(LongDocumentWorkload, RepeatsNoOrderBeforeAllHaveCome) {
  WorkloadOptions options = small_pool();
  options.kind = WorkloadKind::kLongDocument;
  options.documents_per_prompt = 3;
  std::set<std::vector<std::string>> orders;
  for (const WorkloadRequest& request : made(options, 6, 1)) orders.insert(ids_of(request));
  EXPECT_EQ(orders.size(), 6U);
}

TEST(MultiRoundWorkload, LinksTheRoundsOfAConversation) {
  WorkloadOptions options = small_pool();
  options.kind = WorkloadKind::kMultiRound;
  options.rounds = 3;
  const auto requests = made(options, 6, 1);
  EXPECT_FALSE(requests[1].follows.has_value());
  EXPECT_EQ(requests[2].follows, 0U);
  EXPECT_EQ(requests[5].follows, 3U);
}

TEST_F(WorkloadFile, ReadsRagRowsInTheirOrder) {
  const auto requests = made(
      of(WorkloadKind::kRag,
         R"({"id": "x", "documents": [{"title": "A", "text": "a"}, "b"], "question": "q?", "answers": ["y"], "score": 1})"
         "\n"
         R"({"documents": ["c"], "question": "r?", "max_tokens": 3})"),
      10, 0);
  ASSERT_EQ(requests.size(), 2U);
  EXPECT_EQ(requests[0].documents[0].title, "A");
  EXPECT_FALSE(requests[0].documents[1].title.has_value());
  EXPECT_EQ(requests[0].answers, std::vector<std::string>{"y"});
  EXPECT_EQ(requests[1].max_tokens, 3);
}

TEST_F(WorkloadFile, SplitsLongBenchContextsIntoTheirPassages) {
  const auto requests = made(
      of(WorkloadKind::kLongBench,
         R"({"input": "Who?", "context": "Passage 1:\nOne says Passage 9: no.\n\nPassage 2:\nTwo", "answers": ["x"], "dataset": "hotpotqa_e", "_id": "7"})"),
      1, 0);
  ASSERT_EQ(requests.size(), 1U);
  ASSERT_EQ(requests[0].documents.size(), 2U);
  EXPECT_EQ(requests[0].documents[1].text, "Passage 2:\nTwo\n");
  EXPECT_EQ(requests[0].metric, AnswerMetric::kF1);
  EXPECT_TRUE(requests[0].messages[0].content.ends_with("Who?"));
}

TEST_F(WorkloadFile, ReadsChatRagBench) {
  WorkloadOptions options = of(
      WorkloadKind::kChatRag,
      R"([{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}], "ctxs": [{"title": "t", "text": "u"}, {"title": "v", "text": "w"}], "answers": [["d"]]}])");
  options.documents_per_prompt = 1;
  const auto requests = made(options, 1, 0);
  ASSERT_EQ(requests.size(), 1U);
  EXPECT_EQ(requests[0].messages.size(), 3U);
  EXPECT_EQ(requests[0].documents.size(), 1U);
  EXPECT_EQ(requests[0].answers, std::vector<std::string>{"d"});
}

TEST_F(WorkloadFile, MakesBlocksOfAMooncakeTraceByTheirHashes) {
  WorkloadOptions options =
      of(WorkloadKind::kMooncake,
         R"({"timestamp": 0, "input_length": 25, "output_length": 3, "hash_ids": [4, 5, 6]})"
         "\n"
         R"({"timestamp": 1500, "input_length": 15, "output_length": 4, "hash_ids": [5, 9]})");
  options.trace_block_len = 10;
  options.time_scale = 2;
  const auto requests = made(options, 10, 0);
  ASSERT_EQ(requests.size(), 2U);
  EXPECT_EQ(ids_of(requests[0]), (std::vector<std::string>{"h4", "h5"}));
  EXPECT_EQ(requests[0].documents[1].text, requests[1].documents[0].text);
  EXPECT_EQ(std::ranges::count(requests[0].messages[0].content, ' '), 4);
  EXPECT_EQ(requests[1].arrival_seconds, 3);
  EXPECT_EQ(requests[1].max_tokens, 4);
}

TEST_F(WorkloadFile, NamesTheLineOfARowThatIsNotUsable) {
  const std::map<WorkloadKind, std::string> rows = {
      {WorkloadKind::kRag, R"({"documents": ["c"]})"},
      {WorkloadKind::kLongBench, R"({"input": "q", "context": "c", "dataset": "dureader"})"},
      {WorkloadKind::kChatRag, R"({"messages": [{"role": "assistant", "content": "b"}]})"},
      {WorkloadKind::kMooncake, R"({"timestamp": -1, "input_length": 1})"}};
  for (const auto& [kind, row] : rows) {
    for (const std::string& text : {"\n" + row, std::string("\n{\"a\"")}) {
      const Status status = make_workload(of(kind, text), 1, 0, {}).status();
      EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << workload_name(kind);
      EXPECT_NE(status.message().find(":2: "), std::string::npos) << status.message();
    }
  }
}

}  // namespace
}  // namespace anyslot::bench
