#include "model_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
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
    const Expected<std::vector<TokenTimes>> answers = answer(test);
    if (!answers) return answers.status();
    if (test.prompt_tokens == 0) return decode_rate(test, *answers);
    return static_cast<double>(test.prompt_tokens) / answers->front().front() * 1e3;
  }

  /// Computes the test's depth, unless it is cached already.
  Status warm_up(const ModelTest& test) {
    ModelTest longer = test;
    longer.prompt_tokens = 0;
    longer.generated_tokens = 1;
    return answer(longer).status();
  }

 private:
  using Clock = std::chrono::steady_clock;
  /// When the tokens of an answer came, in ms since the first of the batch was submitted.
  using TokenTimes = std::vector<double>;

  Expected<std::vector<TokenTimes>> answer(const ModelTest& test) {
    std::vector<Request> requests;
    for (int64_t i = 0; i < test.batch; ++i) requests.push_back(request(test, i));
    const Clock::time_point start = Clock::now();
    std::vector<double> submitted_ms;
    std::vector<Stream> streams;
    for (const Request& request : requests) {
      submitted_ms.push_back(
          std::chrono::duration<double, std::milli>(Clock::now() - start).count());
      Expected<Stream> stream = engine_.submit(request);
      if (!stream) return stream.status();
      streams.push_back(*std::move(stream));
    }
    std::vector<TokenTimes> answers;
    for (size_t i = 0; i < streams.size(); ++i) {
      Expected<cli::Completion> completion = cli::collect(std::move(streams[i]));
      if (!completion) return completion.status();
      if (Status status = check_usage(test, completion->usage); !status.ok()) return status;
      answers.push_back(std::move(completion->token_ms));
      for (double& ms : answers.back()) ms += submitted_ms[i];
    }
    return answers;
  }

  /// Of all answers together while each of them decodes. A request's first and last token in that
  /// time bound its own, so that no part of a step is counted.
  static Expected<double> decode_rate(const ModelTest& test,
                                      const std::vector<TokenTimes>& answers) {
    double begin = 0;
    double end = std::numeric_limits<double>::infinity();
    for (const TokenTimes& times : answers) {
      begin = std::max(begin, times.front());
      end = std::min(end, times.back());
    }
    double rate = 0;
    for (const TokenTimes& times : answers) {
      const auto of_this = [&](double ms) { return std::ranges::upper_bound(times, ms) - 1; };
      if (end <= begin || of_this(begin) == of_this(end)) {
        return resource_exhausted(
            fmt::format("{}: the requests did not decode at once; raise --generate or --kv-cache",
                        test.name()));
      }
      const auto first = of_this(begin);
      const auto last = of_this(end);
      rate += static_cast<double>(last - first) / (*last - *first) * 1e3;
    }
    return rate;
  }

  Request request(const ModelTest& test, int64_t index) {
    Request request;
    request.segments = context(test, index);
    request.segments.push_back(
        segment_of(SegmentKind::kText, random_tokens(std::max<int64_t>(test.prompt_tokens, 1))));
    request.method = test.method;
    request.sampling.ignore_eos = true;
    request.sampling.max_tokens = static_cast<int>(test.generated_tokens) + 1;
    return request;
  }

  TokenIds random_tokens(int64_t count) {
    TokenIds ids(static_cast<size_t>(count));
    for (int32_t& id : ids) id = token_(random_);
    return ids;
  }

  /// The `depth` tokens of the batch's request `index`, the same in every call; documents stand in
  /// a new order each time.
  std::vector<Segment> context(const ModelTest& test, int64_t index) {
    const int64_t all_begin = index * test.depth;
    const int64_t all_end = all_begin + test.depth;
    while (static_cast<int64_t>(context_.size()) < all_end) context_.push_back(token_(random_));
    std::vector<Segment> segments;
    const bool in_pieces = has_documents(test.method) || test.text_anew;
    const int64_t step = in_pieces ? options_.document_tokens : test.depth;
    for (int64_t begin = all_begin; begin < all_end; begin += step) {
      const int64_t end = std::min(begin + step, all_end);
      segments.push_back(
          segment_of(has_documents(test.method) ? SegmentKind::kDocument : SegmentKind::kText,
                     TokenIds(context_.begin() + begin, context_.begin() + end)));
    }
    std::ranges::shuffle(segments, random_);
    return segments;
  }

  /// An answer that was cut short, or a depth that was not cached and so computed within the time
  /// to the first token, would be measured for something else.
  static Status check_usage(const ModelTest& test, const Usage& usage) {
    if (usage.completion_tokens != test.generated_tokens + 1) {
      return invalid_argument(fmt::format(
          "{}: only {} tokens fit the model's length; ask for fewer or raise --max-model-len",
          test.name(), usage.completion_tokens));
    }
    if (test.prompt_tokens == 0 || test.text_anew) return {};
    // Text is cached in whole blocks.
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

}  // namespace

std::string ModelTest::name() const {
  std::string name = prompt_tokens > 0 ? fmt::format("pp{}", prompt_tokens)
                                       : fmt::format("tg{}", generated_tokens);
  if (batch > 1) name += fmt::format(" x {}", batch);
  if (depth > 0) name += fmt::format(" @ d{}", depth);
  if (text_anew) name += " reordered";
  return name;
}

std::vector<ModelTest> plan_model_tests(const ModelBenchOptions& options) {
  std::vector<ModelTest> tests;
  for (const Method method : options.methods) {
    for (const int64_t depth : options.depths) {
      const bool text_anew = options.reorder && depth > 0 && !has_documents(method);
      const ModelTest common = {.method = method, .depth = depth, .text_anew = text_anew};
      for (const int64_t prompt_tokens : options.prompt_tokens) {
        if (method == Method::kFull && depth > 0 && !text_anew) continue;
        tests.push_back(common);
        tests.back().prompt_tokens = prompt_tokens;
      }
      if (options.generate == 0 || text_anew) continue;
      for (const int64_t batch : options.batches) {
        tests.push_back(common);
        tests.back().generated_tokens = options.generate;
        tests.back().batch = batch;
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
        if (Status status = bench.warm_up(test); !status.ok()) return status;
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
