#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "sched/scheduler.h"
#include "sched/test_device.h"

namespace anyslot {

using Ids = std::vector<int32_t>;

inline Ids make_document(int seed, int length) {
  Ids ids(static_cast<size_t>(length));
  std::iota(ids.begin(), ids.end(), seed * 1000);
  return ids;
}

struct Prompt {
  Prompt(std::vector<Ids> given_documents, Ids given_question, Method given_method = Method::kLazy,
         int given_max_tokens = 5)
      : documents(std::move(given_documents)),
        question(std::move(given_question)),
        method(given_method),
        max_tokens(given_max_tokens) {}

  std::vector<Ids> documents;
  Ids question;
  Method method;
  int max_tokens;
  bool recompute_first_block = false;
  std::string salt;
  Ids text_between;  // after each document
};

// A scheduler, its cache, and a device that only remembers what was written where.
class Harness {
 public:
  explicit Harness(int64_t num_blocks, SchedulerConfig config = {})
      : cache_(num_blocks), scheduler_(config, cache_) {}

  /// The id of choice 0; those of the others follow it.
  uint64_t submit(const Prompt& prompt, int num_choices = 1) {
    std::vector<TokenSegment> segments;
    for (const Ids& document : prompt.documents) {
      segments.push_back({SegmentKind::kDocument, document, "", -1});
      segments.push_back({SegmentKind::kText, prompt.text_between, "", -1});
    }
    segments.push_back({SegmentKind::kText, prompt.question, "", -1});
    const auto normal = normalize_segments(std::move(segments));
    EXPECT_TRUE(normal.ok());
    GivenRequest given = expand_prompt(
        *normal, method_traits(prompt.method, prompt.recompute_first_block), {}, prompt.salt);
    given.sampling.max_tokens = prompt.max_tokens;
    largest_need = std::max(largest_need, max_blocks(given, prompt.max_tokens));
    const uint64_t request_id = next_id_;
    for (auto& choice : make_choices(std::make_shared<const GivenRequest>(given), num_choices)) {
      choice->id = next_id_++;
      choice->request_id = request_id;
      scheduler_.submit(std::move(choice));
    }
    return request_id;
  }

  /// Encodes a document ahead; returns the id of its sequence.
  uint64_t submit_document(const TokenSegment& document, Method method = Method::kLazy) {
    auto given = std::make_shared<const GivenRequest>(
        expand_document(document, method_traits(method, false), {}, ""));
    auto sequence = std::move(make_choices(std::move(given), 1).front());
    sequence->id = sequence->request_id = next_id_++;
    scheduler_.submit(std::move(sequence));
    return next_id_ - 1;
  }

  bool step() {
    const bool planned = scheduler_.plan_step(plan);
    keep_ended();
    if (!planned) return false;
    const std::vector<int32_t> samples = device.run(plan);
    scheduler_.commit_step();
    keep_ended();
    size_t next = 0;
    for (const SampleTarget& target : scheduler_.sample_targets()) {
      next += static_cast<size_t>(target.num_rows);
      if (target.next_token) take_token(*target.sequence, samples[next - 1]);
    }
    const Status status = scheduler_.check_integrity();
    EXPECT_TRUE(status.ok()) << status.message();
    return true;
  }

  void run() {
    while (step()) {
    }
    EXPECT_EQ(cache_.stats().referenced_entries, 0);
    EXPECT_EQ(cache_.stats().private_blocks, 0);
  }

  Ids answer(const Prompt& prompt) {
    const uint64_t id = submit(prompt);
    run();
    return answers.at(id);
  }

  KvCache& cache() { return cache_; }
  Scheduler& scheduler() { return scheduler_; }

  StepPlan plan;
  TestDevice device;
  std::map<uint64_t, Ids> answers;
  std::map<uint64_t, Usage> usages;
  std::map<uint64_t, EndedSequence> ended;  // by the scheduler itself
  std::vector<uint64_t> finished_order;
  int64_t largest_need = 0;  // blocks, see max_blocks

 private:
  void keep_ended() {
    for (EndedSequence& sequence : scheduler_.take_ended()) {
      const uint64_t id = sequence.sequence->id;
      ended.emplace(id, std::move(sequence));
    }
  }

  void take_token(Sequence& sequence, int32_t token) {
    scheduler_.append_token(sequence, token);
    if (sequence.num_generated() < sequence.sampling().max_tokens) return;
    answers[sequence.id] = sequence.answer;
    usages[sequence.id] = sequence.usage;
    finished_order.push_back(sequence.id);
    scheduler_.remove(sequence.id);
  }

  KvCache cache_;
  Scheduler scheduler_;
  uint64_t next_id_ = 1;
};

}  // namespace anyslot
