#include "support/engine_support.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <stdexcept>

namespace anyslot::testing_support {

Engine open_engine(const EngineConfig& config) {
  auto engine = Engine::open(config);
  if (!engine.ok()) throw std::runtime_error(engine.status().message());
  return std::move(*engine);
}

EngineConfig float32_config(const std::string& model_path) {
  EngineConfig config;
  config.model_path = model_path;
  config.device = ANYSLOT_TEST_DEVICE;
  config.dtype = ComputeType::kFloat32;
  config.method = Method::kLazy;
  config.kv_cache_bytes = int64_t{256} << 20;
  return config;
}

Segment document_segment(std::vector<int32_t> token_ids) {
  Segment segment;
  segment.kind = SegmentKind::kDocument;
  segment.token_ids = std::move(token_ids);
  return segment;
}

Segment text_segment(std::vector<int32_t> token_ids) {
  Segment segment;
  segment.token_ids = std::move(token_ids);
  return segment;
}

Stream submit(Engine& engine, const Request& request) {
  auto stream = engine.submit(request);
  if (!stream.ok()) throw std::runtime_error(stream.status().message());
  return std::move(*stream);
}

std::vector<Answer> wait_for_choices(Stream& stream) {
  std::vector<Answer> answers(1);
  for (;;) {
    Event event = stream.next();
    const auto choice = static_cast<size_t>(event.choice);
    if (choice >= answers.size()) answers.resize(choice + 1);
    Answer& answer = answers[choice];
    answer.token_ids.insert(answer.token_ids.end(), event.token_ids.begin(), event.token_ids.end());
    answer.logprobs.insert(answer.logprobs.end(), event.logprobs.begin(), event.logprobs.end());
    answer.text += event.text;
    if (!event.prompt_logits.empty()) answer.prompt_logits = std::move(event.prompt_logits);
    if (!event.finish_reason) continue;
    answer.finish_reason = *event.finish_reason;
    answer.stop_reason = event.stop_reason;
    answer.error = event.error;
    if (!event.last) continue;
    answers[0].usage = std::move(event.usage);
    return answers;
  }
}

Answer wait_for(Stream& stream) { return wait_for_choices(stream).front(); }

Answer run(Engine& engine, const Request& request) {
  Stream stream = submit(engine, request);
  return wait_for(stream);
}

double relative_difference(const std::vector<float>& actual, const std::vector<float>& expected) {
  if (actual.size() != expected.size() || expected.empty()) return HUGE_VAL;
  double largest = 0;
  double difference = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    if (!std::isfinite(actual[i])) return HUGE_VAL;
    largest = std::max(largest, std::abs(double{expected[i]}));
    difference = std::max(difference, std::abs(double{actual[i]} - double{expected[i]}));
  }
  return difference / largest;
}

std::vector<CachedDocument> list_documents(const Engine& engine, const std::string& salt) {
  auto documents = engine.documents(salt);
  if (!documents.ok()) throw std::runtime_error(documents.status().message());
  return *std::move(documents);
}

void run_between_steps(Engine& engine, const std::function<void(internal::StepLoop&)>& work) {
  const Status status = EngineTestAccess::core(engine).call([&work](internal::StepLoop& loop) {
    work(loop);
    return Status();
  });
  if (!status.ok()) throw std::runtime_error(status.message());
}

void expect_idle(Engine& engine) {
  const Status status = engine.check_integrity();
  EXPECT_TRUE(status.ok()) << status.message();
  const Stats stats = engine.stats();
  EXPECT_EQ(stats.running_requests, 0);
  EXPECT_EQ(stats.waiting_requests, 0);
  EXPECT_EQ(stats.referenced_entries, 0);
  EXPECT_EQ(stats.free_blocks + stats.cached_blocks + stats.pinned_blocks, stats.total_blocks);
}

std::vector<int32_t> random_tokens(int64_t count, uint64_t seed, int32_t first, int32_t last) {
  std::mt19937_64 random(seed);
  std::uniform_int_distribution<int32_t> uniform(first, last);
  std::vector<int32_t> tokens(static_cast<size_t>(count));
  for (int32_t& token : tokens) token = uniform(random);
  return tokens;
}

}  // namespace anyslot::testing_support
