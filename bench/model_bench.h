#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "anyslot/engine.h"

namespace anyslot::bench {

struct ModelBenchOptions {
  std::vector<int64_t> prompt_tokens = {64, 512, 2048};
  std::vector<int64_t> depths = {0, 2048};
  int64_t generate = 32;          // tokens; 0: no decoding is measured
  int64_t document_tokens = 125;  // of the documents that make up a depth
  std::vector<Method> methods = {Method::kLazy};
  std::vector<int64_t> batches = {1};  // requests that decode at once
  /// Methods prefix and full get the documents too, as text in a new order each time, and so
  /// compute what lazy takes from the cache.
  bool reorder = false;
  int repetitions = 5;
};

/// A test: the rate at which a prompt of `prompt_tokens` is computed behind `depth` cached tokens,
/// or, without prompt tokens, at which `generated_tokens` follow each other there in each of
/// `batch` requests, counted together.
struct ModelTest {
  Method method = Method::kLazy;
  int64_t prompt_tokens = 0;
  int64_t generated_tokens = 0;
  int64_t depth = 0;       // of each request's own
  int64_t batch = 1;       // requests at once
  bool text_anew = false;  // the depth is text in a new order, so little of it is cached
  std::vector<double> tokens_per_second = {};       // of each repetition
  std::vector<double> peer_tokens_per_second = {};  // of the program it is compared with, if any

  /// As llama-bench names them: "pp512", "tg32 @ d2048"; then "tg32 x 64 @ d2048" of 64 requests,
  /// and "pp64 @ d2048 reordered".
  std::string name() const;
};

/// The tests that the options ask for. Method full keeps nothing, so its prompts have no depth,
/// unless texts are reordered.
std::vector<ModelTest> plan_model_tests(const ModelBenchOptions& options);

/// Runs a test on something else.
using RunTest = std::function<Expected<double>(const ModelTest&)>;

/// Runs all tests once for warmth and then `repetitions` times, in rounds, so that what disturbs
/// the machine disturbs all alike. The depth of lazy, block and mepic is made of documents, in a
/// new order each time, that of prefix of text; both are cached before. Prompts are random and new
/// each time. `peer`, unless empty, runs each test right after the engine. Fails with the engine's
/// or the peer's reason, or when the KV pool was too small to keep a depth cached or to let a
/// batch decode at once.
Status run_model_tests(Engine& engine, const ModelBenchOptions& options, const RunTest& peer,
                       std::vector<ModelTest>& tests,
                       const std::function<void(int64_t tests_done)>& progress);

}  // namespace anyslot::bench
