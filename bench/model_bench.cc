#include "model_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <utility>

#include "cli/completion.h"

namespace anyslot::bench {

namespace {

using TokenIds = std::vector<int32_t>;

constexpr uint64_t kSeed = 2026;
constexpr int64_t kBlock = 16;  // tokens of a KV block, the unit in which text is cached

bool has_documents(Method method) {
  return method == Method::kLazy || method == Method::kBlock || method == Method::kMepic;
}

Segment segment_of(SegmentKind kind, TokenIds token_ids) {
  Segment segment;
  segment.kind = kind;
  segment.token_ids = std::move(token_ids);
  return segment;
}

class ModelBench {
 public:
  ModelBench(Engine& engine, const ModelBenchOptions& options)
      : engine_(engine),
        options_(options),
        token_(0, static_cast<int32_t>(engine.model().vocab_size - 1)) {}

  /// The test's rate, in tokens per second.
  Expected<double> run(const ModelTest& test) {
    Request request;
    request.segments = context(test);
    request.segments.push_back(
        segment_of(SegmentKind::kText, random_tokens(std::max<int64_t>(test.prompt_tokens, 1))));
    request.method = test.method;
    request.sampling.ignore_eos = true;
    request.sampling.max_tokens = static_cast<int>(test.generated_tokens) + 1;
    const Expected<cli::Completion> completion = cli::complete(engine_, request);
    if (!completion) return completion.status();
    const Usage& usage = completion->usage;
    if (test.prompt_tokens > 0) {
      if (Status status = check_cached(test, usage); !status.ok()) return status;
      return static_cast<double>(test.prompt_tokens) / usage.ttft_ms * 1e3;
    }
    if (usage.completion_tokens != test.generated_tokens + 1) {
      return invalid_argument(fmt::format(
          "{}: only {} tokens fit the model's length; ask for fewer or raise --max-model-len",
          test.name(), usage.completion_tokens));
    }
    return static_cast<double>(test.generated_tokens) / (usage.total_ms - usage.ttft_ms) * 1e3;
  }

 private:
  TokenIds random_tokens(int64_t count) {
    TokenIds ids(static_cast<size_t>(count));
    for (int32_t& id : ids) id = token_(random_);
    return ids;
  }

  /// `depth` tokens that are the same in every call; documents stand in a new order each time.
  std::vector<Segment> context(const ModelTest& test) {
    while (static_cast<int64_t>(context_.size()) < test.depth) context_.push_back(token_(random_));
    std::vector<Segment> segments;
    const int64_t step = has_documents(test.method) ? options_.document_tokens : test.depth;
    for (int64_t begin = 0; begin < test.depth; begin += step) {
      const int64_t end = std::min(begin + step, test.depth);
      segments.push_back(
          segment_of(has_documents(test.method) ? SegmentKind::kDocument : SegmentKind::kText,
                     TokenIds(context_.begin() + begin, context_.begin() + end)));
    }
    std::ranges::shuffle(segments, random_);
    return segments;
  }

  /// A depth that was not cached would be computed within the time to the first token. Text is
  /// cached in whole blocks.
  static Status check_cached(const ModelTest& test, const Usage& usage) {
    const int64_t expected = has_documents(test.method) ? test.depth : test.depth / kBlock * kBlock;
    if (usage.cached_tokens >= expected) return {};
    return resource_exhausted(fmt::format(
        "{}: only {} of {} tokens before the prompt were still cached; raise --kv-cache",
        test.name(), usage.cached_tokens, test.depth));
  }

  Engine& engine_;
  const ModelBenchOptions& options_;
  std::mt19937_64 random_{kSeed};
  std::uniform_int_distribution<int32_t> token_;
  TokenIds context_;
};

/// Computes the test's depth, unless it is cached already.
ModelTest warm_up_of(const ModelTest& test) {
  return {.method = test.method, .generated_tokens = 1, .depth = test.depth};
}

}  // namespace

std::string ModelTest::name() const {
  std::string name = prompt_tokens > 0 ? fmt::format("pp{}", prompt_tokens)
                                       : fmt::format("tg{}", generated_tokens);
  if (depth > 0) name += fmt::format(" @ d{}", depth);
  return name;
}

std::vector<ModelTest> plan_model_tests(const ModelBenchOptions& options) {
  std::vector<ModelTest> tests;
  for (const Method method : options.methods) {
    for (const int64_t depth : options.depths) {
      for (const int64_t prompt_tokens : options.prompt_tokens) {
        if (method == Method::kFull && depth > 0) continue;
        tests.push_back({.method = method, .prompt_tokens = prompt_tokens, .depth = depth});
      }
      if (options.generate > 0) {
        tests.push_back({.method = method, .generated_tokens = options.generate, .depth = depth});
      }
    }
  }
  return tests;
}

Status run_model_tests(Engine& engine, const ModelBenchOptions& options, const RunTest& peer,
                       std::vector<ModelTest>& tests,
                       const std::function<void(int64_t tests_done)>& progress) {
  ModelBench bench(engine, options);
  int64_t done = 0;
  for (int round = -1; round < options.repetitions; ++round) {
    for (ModelTest& test : tests) {
      if (round < 0) {
        if (const auto rate = bench.run(warm_up_of(test)); !rate) return rate.status();
      }
      const Expected<double> rate = bench.run(test);
      if (!rate) return rate.status();
      if (round >= 0) test.tokens_per_second.push_back(*rate);
      if (peer) {
        const Expected<double> peer_rate = peer(test);
        if (!peer_rate) return peer_rate.status();
        if (round >= 0) test.peer_tokens_per_second.push_back(*peer_rate);
      }
      progress(++done);
    }
  }
  return {};
}

}  // namespace anyslot::bench
