#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "anyslot/anyslot.h"
#include "engine/engine_core.h"

namespace anyslot {

/// What tests may see of an engine's inside.
struct EngineTestAccess {
  static internal::EngineCore& core(Engine& engine) { return *engine.core_; }
};

}  // namespace anyslot

namespace anyslot::testing_support {

/// Everything that one choice gave; usage is that of the whole request, in choice 0.
struct Answer {
  std::vector<int32_t> token_ids;
  std::string text;
  std::vector<TokenLogprobs> logprobs;
  std::vector<float> prompt_logits;
  FinishReason finish_reason = FinishReason::kError;
  std::optional<StopReason> stop_reason;
  std::string error;
  Usage usage;
};

/// Throws std::runtime_error with the engine's message when it does not open.
Engine open_engine(const EngineConfig& config);
/// A float32 engine of a model.
EngineConfig float32_config(const std::string& model_path);

Segment document_segment(std::vector<int32_t> token_ids);
Segment text_segment(std::vector<int32_t> token_ids);

/// Submits; throws with the engine's message when it refuses.
Stream submit(Engine& engine, const Request& request);
/// All choices, in their order.
std::vector<Answer> wait_for_choices(Stream& stream);
/// Choice 0.
Answer wait_for(Stream& stream);
Answer run(Engine& engine, const Request& request);

/// Largest absolute difference, over the largest absolute value of `expected`.
double relative_difference(const std::vector<float>& actual, const std::vector<float>& expected);

/// The documents that are cached under a salt; throws when the engine fails to list them.
std::vector<CachedDocument> list_documents(const Engine& engine, const std::string& salt = "");
/// Runs `work` on the engine's thread, between two steps.
void run_between_steps(Engine& engine, const std::function<void(internal::StepLoop&)>& work);

/// Expects a sound pool and nothing referenced.
void expect_idle(Engine& engine);

/// Random token ids in [first, last].
std::vector<int32_t> random_tokens(int64_t count, uint64_t seed, int32_t first = 3,
                                   int32_t last = 127);

}  // namespace anyslot::testing_support
