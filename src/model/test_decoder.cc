#include "model/test_decoder.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace anyslot {

std::vector<std::string> backend_names() {
#ifdef ANYSLOT_HAS_CPU_BACKEND
  return {"reference", "cpu"};
#else
  return {"reference"};
#endif
}

std::unique_ptr<Backend> make_backend(const std::string& name, DType dtype) {
  const BackendOptions options{.dtype = dtype, .num_threads = 2, .max_isa = ""};
#ifdef ANYSLOT_HAS_CPU_BACKEND
  if (name == "cpu") {
    auto backend = create_cpu_backend(options);
    EXPECT_TRUE(backend.ok()) << backend.status().message();
    return backend.ok() ? std::move(*backend) : nullptr;
  }
#endif
  EXPECT_EQ(name, "reference");
  return create_reference_backend(options);
}

std::string golden_dir(const std::string& name) {
  return std::string(ANYSLOT_GOLDENS_DIR) + "/tiny/" + name;
}

double relative_error(std::span<const float> actual, std::span<const float> expected) {
  EXPECT_EQ(actual.size(), expected.size());
  if (actual.size() != expected.size()) return INFINITY;
  double largest = 0;
  double difference = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(expected[i])));
    const double here = std::abs(static_cast<double>(actual[i]) - expected[i]);
    difference = std::isnan(here) ? INFINITY : std::max(difference, here);
  }
  return difference / largest;
}

TestModel::TestModel(std::unique_ptr<Backend> on, const std::string& dir, int64_t max_model_len)
    : backend(std::move(on)) {
  take(Decoder::load(dir, *backend, max_model_len));
}

TestModel::TestModel(std::unique_ptr<Backend> on, std::unique_ptr<WeightSource> weights,
                     const ModelConfig& config)
    : backend(std::move(on)) {
  take(Decoder::load(std::move(weights), config, *backend));
}

void TestModel::take(Expected<std::unique_ptr<Decoder>> loaded) {
  EXPECT_TRUE(loaded.ok()) << loaded.status().message();
  decoder = std::move(*loaded);
  auto storage =
      backend->create_kv_storage(decoder->kv_shape(backend->activation_dtype(), kNumBlocks));
  EXPECT_TRUE(storage.ok()) << storage.status().message();
  kv = std::move(*storage);
}

std::vector<float> TestModel::forward(const StepPlan& plan) {
  std::vector<float> logits = {NAN};  // what was in it must not stay
  const Status status = decoder->forward(plan, *kv, logits);
  EXPECT_TRUE(status.ok()) << status.message();
  return logits;
}

Golden::Golden(const std::string& name) {
  const auto store = TensorStore::open_file(golden_dir(name) + "/golden.safetensors");
  EXPECT_TRUE(store.ok()) << store.status().message();
  token_ids = tensor_values<int32_t>(*store, "input_ids");
  full_logits = tensor_values<float>(*store, "full_logits");
  const bool has_both = store->find("block_logits") != nullptr;
  const auto alone = TensorStore::open_file(
      golden_dir(name) + (has_both ? "/golden.safetensors" : "/alone.safetensors"));
  EXPECT_TRUE(alone.ok()) << alone.status().message();
  segment_of_token = tensor_values<int32_t>(*alone, "segment_of_token");
  block_logits = tensor_values<float>(*alone, "block_logits");
  vocab = full_logits.size() / token_ids.size();
}

int64_t Golden::segment_begin(int segment) const {
  return std::ranges::find(segment_of_token, segment) - segment_of_token.begin();
}

std::span<const int32_t> Golden::segment(int segment) const {
  const auto count = std::ranges::count(segment_of_token, segment);
  return std::span(token_ids).subspan(static_cast<size_t>(segment_begin(segment)),
                                      static_cast<size_t>(count));
}

std::span<const float> Golden::rows(const std::vector<float>& logits, int64_t begin,
                                    int64_t end) const {
  return std::span(logits).subspan(static_cast<size_t>(begin) * vocab,
                                   static_cast<size_t>(end - begin) * vocab);
}

}  // namespace anyslot
