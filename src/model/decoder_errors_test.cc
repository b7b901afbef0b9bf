#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
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
