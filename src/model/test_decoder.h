#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "model/decoder.h"
#include "model/safetensors.h"
#include "model/test_steps.h"

namespace anyslot {

inline constexpr double kTolerance = 1e-5;  // of the largest logit, in float32
inline constexpr int kNumBlocks = 64;

/// The backends in this build.
std::vector<std::string> backend_names();
std::unique_ptr<Backend> make_backend(const std::string& name, DType dtype);

/// The folder of a tiny model.
std::string golden_dir(const std::string& name);

/// A tensor of a file; a missing one fails the test.
template <typename T>
std::vector<T> tensor_values(const TensorStore& store, const std::string& name) {
  const StoredTensor* tensor = store.find(name);
  EXPECT_NE(tensor, nullptr) << name;
  if (tensor == nullptr) return {};
  std::vector<T> values(tensor->bytes.size() / sizeof(T));
  std::memcpy(values.data(), tensor->bytes.data(), tensor->bytes.size());
  return values;
}

/// The largest difference, relative to the largest expected value; infinite for a NaN.
double relative_error(std::span<const float> actual, std::span<const float> expected);

/// A model on a backend, its KV pool of kNumBlocks, and steps that must succeed.
struct TestModel {
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Decoder> decoder;
  std::unique_ptr<KvStorage> kv;
  TestBlocks blocks{kNumBlocks};

  TestModel(const std::string& backend_name, DType dtype, const std::string& dir,
            int64_t max_model_len = 0)
      : TestModel(make_backend(backend_name, dtype), dir, max_model_len) {}
  TestModel(std::unique_ptr<Backend> on, const std::string& dir, int64_t max_model_len = 0);
  TestModel(std::unique_ptr<Backend> on, std::unique_ptr<WeightSource> weights,
            const ModelConfig& config);

  std::vector<float> forward(const StepPlan& plan);

 private:
  void take(Expected<std::unique_ptr<Decoder>> loaded);
};

/// Golden files, see test_goldens.h: one prompt of four documents of 16 tokens and a query of 8.
struct Golden {
  std::vector<int32_t> token_ids;
  std::vector<int32_t> segment_of_token;
  std::vector<float> full_logits;   // [num_tokens, vocab], causal over everything
  std::vector<float> block_logits;  // [num_tokens, vocab], each document alone
  size_t vocab = 0;

  explicit Golden(const std::string& name);

  int64_t size() const { return static_cast<int64_t>(token_ids.size()); }
  int64_t segment_begin(int segment) const;
  std::span<const int32_t> segment(int segment) const;
  std::span<const float> rows(const std::vector<float>& logits, int64_t begin, int64_t end) const;
};

}  // namespace anyslot
