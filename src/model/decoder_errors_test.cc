#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/decoder.h"
#include "model/test_decoder.h"
#include "model/test_files.h"

namespace anyslot {
namespace {

using ::testing::HasSubstr;

class BrokenModel : public ::testing::Test {
 protected:
  BrokenModel() : backend(make_backend("reference", DType::kFloat32)) {
    for (const char* name : {"config.json", "model.safetensors"}) {
      folder.write(name, read_bytes(golden_dir("llama-plain") + "/" + name));
    }
  }
  void set_config(const std::string& key, const nlohmann::json& value) {
    nlohmann::json config = nlohmann::json::parse(read_bytes(folder.file("config.json")));
    config[key] = value;
    folder.write("config.json", config.dump());
  }
  Status load() { return Decoder::load(folder.path(), *backend).status(); }

  TemporaryFolder folder;
  std::unique_ptr<Backend> backend;
};

TEST_F(BrokenModel, NamesTheTensorThatDoesNotFitTheConfig) {
  ASSERT_TRUE(load().ok());
  set_config("vocab_size", 321);
  EXPECT_THAT(load().message(), HasSubstr("tensor \"model.embed_tokens.weight\" has shape [320, "
                                          "64], where the model's config needs [321, 64]"));
}

TEST_F(BrokenModel, NamesTheTensorThatIsMissing) {
  set_config("num_hidden_layers", 4);
  const Status status = load();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("no tensor \"model.layers.3.input_layernorm.weight\""));
}

TEST_F(BrokenModel, TruncatedWeightsAreRefused) {
  const std::string weights = read_bytes(folder.file("model.safetensors"));
  folder.write("model.safetensors", weights.substr(0, weights.size() / 2));
  EXPECT_THAT(load().message(), HasSubstr("the file is truncated or damaged"));
}

/// A reference backend that can be told to throw, and that counts its open steps.
class ThrowingBackend : public Backend {
 public:
  bool throws = false;
  int open_steps = 0;

  std::string_view name() const override { return inner_->name(); }
  std::string description() const override { return inner_->description(); }
  DType activation_dtype() const override { return inner_->activation_dtype(); }
  Expected<std::unique_ptr<DeviceBuffer>> allocate(size_t bytes) override {
    return inner_->allocate(bytes);
  }
  Expected<std::unique_ptr<LinearWeight>> load_linear(std::span<const TensorView> parts) override {
    return inner_->load_linear(parts);
  }
  Expected<std::unique_ptr<KvStorage>> create_kv_storage(const KvShape& shape) override {
    return inner_->create_kv_storage(shape);
  }
  Status begin_step(const StepPlan& plan, std::span<const int64_t> windows) override {
    ++open_steps;
    return inner_->begin_step(plan, windows);
  }
  Status end_step() override {
    --open_steps;
    return inner_->end_step();
  }
  Status copy_blocks(KvStorage& storage, std::span<const BlockCopy> copies,
                     std::span<const RopeTable* const> rope) override {
    return inner_->copy_blocks(storage, copies, rope);
  }
  Status embed(const TensorView& table, const TensorView& out) override {
    return inner_->embed(table, out);
  }
  Status rms_norm(const TensorView& x, const float* weight, float epsilon,
                  const TensorView& out) override {
    return inner_->rms_norm(x, weight, epsilon, out);
  }
  Status linear(const LinearWeight& weight, const TensorView& x, const TensorView& out,
                bool accumulate) override {
    return inner_->linear(weight, x, out, accumulate);
  }
  Status write_kv(KvStorage& storage, int layer, const AttentionSpec& spec, const TensorView& k,
                  const TensorView& v) override {
    return inner_->write_kv(storage, layer, spec, k, v);
  }
  Status attention(const KvStorage& storage, int layer, const AttentionSpec& spec, RowSet rows,
                   const TensorView& q, const TensorView& out) override {
    if (throws) throw std::runtime_error("a library threw");
    return inner_->attention(storage, layer, spec, rows, q, out);
  }
  Status gated(Activation activation, const TensorView& gate_up, const TensorView& out) override {
    return inner_->gated(activation, gate_up, out);
  }
  Status gather_sampled(const TensorView& x, const TensorView& out) override {
    return inner_->gather_sampled(x, out);
  }
  Status download(const TensorView& x, std::span<float> out) override {
    return inner_->download(x, out);
  }

 private:
  std::unique_ptr<Backend> inner_ = make_backend("reference", DType::kFloat32);
};

TEST(DecoderErrors, AnExceptionEndsTheStep) {
  const Golden golden("llama-plain");
  auto owned = std::make_unique<ThrowingBackend>();
  ThrowingBackend& backend = *owned;
  TestModel model(std::move(owned), golden_dir("llama-plain"));
  const TestSpan span = model.blocks.span(golden.token_ids);
  StepPlan plan;
  add_sequence(plan, span, 0, 0, span.size(), {}, sample_all);
  backend.throws = true;
  std::vector<float> logits;
  EXPECT_THROW(static_cast<void>(model.decoder->forward(plan, *model.kv, logits)),
               std::runtime_error);
  EXPECT_EQ(backend.open_steps, 0);

  backend.throws = false;
  EXPECT_LE(relative_error(model.forward(plan), golden.full_logits), kTolerance);
  EXPECT_EQ(backend.open_steps, 0);
}

/// Lacks what some models need, as a device may.
class PlainBackend : public ThrowingBackend {
 public:
  Status check_needs(const ModelNeeds& needs) const override {
    if (needs.score_caps) return failed_precondition("no soft caps of scores here");
    if (needs.experts) return failed_precondition("no experts here");
    return {};
  }
};

TEST(DecoderErrors, WhatABackendLacksIsRefusedWhenTheModelIsLoaded) {
  PlainBackend backend;
  const auto refusal = [&backend](const char* model) {
    return Decoder::load(golden_dir(model), backend).status().message();
  };
  EXPECT_EQ(refusal("gemma2"), "no soft caps of scores here");
  EXPECT_EQ(refusal("mixtral"), "no experts here");
  EXPECT_EQ(refusal("gemma3"), "");
  EXPECT_EQ(refusal("mistral-window"), "");
}

TEST(DecoderErrors, AFailedStepLeavesTheDecoderUsable) {
  const Golden golden("llama-plain");
  TestModel model("reference", DType::kFloat32, golden_dir("llama-plain"));
  const TestSpan span = model.blocks.span(golden.token_ids);
  StepPlan plan;
  add_sequence(plan, span, 0, 0, span.size(), {}, sample_all);
  StepPlan bad = plan;
  bad.rows[3].write_slot = int64_t{kNumBlocks} * kBlockSize;
  std::vector<float> logits;
  const Status status = model.decoder->forward(bad, *model.kv, logits);
  EXPECT_THAT(status.message(), HasSubstr("slot 1024"));
  EXPECT_LE(relative_error(model.forward(plan), golden.full_logits), kTolerance);
}

TEST(DecoderFingerprint, TellsModelsAndTypesApart) {
  const TestModel plain("reference", DType::kFloat32, golden_dir("llama-plain"));
  const TestModel again("reference", DType::kFloat32, golden_dir("llama-plain"));
  const TestModel tied("reference", DType::kFloat32, golden_dir("llama-tied"));
  const TestModel bfloat16("reference", DType::kBFloat16, golden_dir("llama-plain"));
  EXPECT_EQ(plain.decoder->fingerprint(), again.decoder->fingerprint());
  EXPECT_NE(plain.decoder->fingerprint(), tied.decoder->fingerprint());
  EXPECT_NE(plain.decoder->fingerprint(), bfloat16.decoder->fingerprint());
}

}  // namespace
}  // namespace anyslot
