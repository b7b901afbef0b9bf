// A GGUF file and the Hugging Face folder of the same model are the same model.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "model/gguf/gguf_config.h"
#include "model/gguf/gguf_file.h"
#include "model/gguf/gguf_weights.h"
#include "model/gguf/test_gguf_models.h"
#include "model/test_decoder.h"
#include "model/test_files.h"
#include "model/test_goldens.h"

namespace anyslot {
namespace {

using namespace testing_gguf;

std::shared_ptr<const GgufFile> open_file(const TemporaryFolder& folder, const GgufWriter& file) {
  auto opened = GgufFile::open(folder.write("model.gguf", file.bytes()));
  EXPECT_TRUE(opened.ok()) << opened.status().message();
  return *opened;
}

GgufWriter llama() { return gguf_of_folder(golden_dir("llama-plain"), kF32); }

std::vector<float> logits_of(TestModel& model, const Golden& golden) {
  const TestSpan span = model.blocks.span(golden.token_ids);
  StepPlan plan;
  add_sequence(plan, span, 0, 0, span.size(), {}, sample_all);
  return model.forward(plan);
}

TestModel model_of(const GgufWriter& file) {
  const TemporaryFolder folder;
  const auto opened = open_file(folder, file);
  const auto config = gguf_config(*opened);
  EXPECT_TRUE(config.ok()) << config.status().message();
  auto weights = gguf_weights(opened, *config, 2);
  EXPECT_TRUE(weights.ok()) << weights.status().message();
  return {make_backend("reference", DType::kFloat32), std::move(*weights), *config};
}

void expect_same_config(const ModelConfig& a, const ModelConfig& b) {
  EXPECT_EQ(a.architecture, b.architecture);
  EXPECT_EQ(a.max_position_embeddings, b.max_position_embeddings);
  EXPECT_EQ(a.max_model_len, b.max_model_len);
  EXPECT_EQ(a.eos_token_ids, b.eos_token_ids);
  EXPECT_EQ(a.rms_norm_eps, b.rms_norm_eps);
  EXPECT_EQ(a.head_dim, b.head_dim);
  EXPECT_EQ(a.num_kv_heads, b.num_kv_heads);
  EXPECT_EQ(a.tie_word_embeddings, b.tie_word_embeddings);
}

/// Families that are not read from GGUF files, and a model that none can describe: which layers are
/// turned is not in the metadata.
constexpr std::string_view kNotInGguf[] = {"mixtral", "qwen3-moe", "smollm3-unturned"};

TEST(GgufModel, GivesTheLogitsOfTheSafetensors) {
  for (const std::string name : kGoldenModels) {
    if (std::ranges::count(kNotInGguf, name) > 0) continue;
    SCOPED_TRACE(name);
    const Golden golden(name);
    TestModel theirs("reference", DType::kFloat32, golden_dir(name));
    TestModel ours = model_of(gguf_of_folder(golden_dir(name), kF32));
    expect_same_config(ours.decoder->config(), theirs.decoder->config());
    const std::vector<float> logits = logits_of(ours, golden);
    EXPECT_LE(relative_error(logits, golden.full_logits), kTolerance);
    if (name == "llama-rope-llama3") continue;  // its factors are float32 in the file
    EXPECT_EQ(logits, logits_of(theirs, golden));
  }
}

TEST(GgufModel, LosesWhatItsTypeLoses) {
  const Golden golden("llama-plain");
  const struct {
    uint32_t type;
    double most;
    double least;
  } kTypes[] = {{kF16, 2e-3, 1e-6}, {kBF16, 2e-2, 1e-5}, {kQ8_0, 3e-2, 1e-5}, {kQ4_0, 0.5, 1e-3}};
  for (const auto& type : kTypes) {
    TestModel model = model_of(gguf_of_folder(golden_dir("llama-plain"), type.type));
    const double error = relative_error(logits_of(model, golden), golden.full_logits);
    EXPECT_LE(error, type.most) << type.type;
    EXPECT_GE(error, type.least) << type.type;
  }
}

TEST(GgufModel, TheFingerprintFollowsTheWeights) {
  const TemporaryFolder folder;
  const Digest plain = open_file(folder, llama())->fingerprint();
  GgufWriter other_metadata = llama();
  other_metadata.add_text("general.name", "another");
  EXPECT_EQ(open_file(folder, other_metadata)->fingerprint(), plain);
  GgufWriter other_weights = llama();
  other_weights.tensors.back().data[0] ^= 1;
  EXPECT_NE(open_file(folder, other_weights)->fingerprint(), plain);
}

TEST(GgufModel, ReadsWhatFilesMaySayInOtherWays) {
  GgufWriter file = llama();
  file.remove("llama.vocab_size");
  file.remove("llama.attention.head_count_kv");
  file.remove("llama.attention.key_length");
  file.remove("llama.attention.value_length");
  file.add_i32s("llama.attention.head_count_kv", {2, 2, 2});
  file.add_u32("llama.expert_count", 0);
  file.add_u32("tokenizer.ggml.eot_token_id", 7);
  file.add_u32("split.count", 1);
  file.add_text("general.type", "model");
  const TemporaryFolder folder;
  const auto config = gguf_config(*open_file(folder, file), 100);
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->vocab_size, 320);
  EXPECT_EQ(config->num_kv_heads, 2);
  EXPECT_EQ(config->head_dim, 16);
  EXPECT_EQ(config->max_model_len, 100);
  EXPECT_THAT(config->eos_token_ids, testing::ElementsAre(2, 7));
}

TEST(GgufModel, ReadsLinearScalingHoweverItIsWritten) {
  for (const char* factor : {"llama.rope.scale_linear", "llama.rope.scaling.factor"}) {
    for (const bool typed : {false, true}) {
      SCOPED_TRACE(testing::Message() << factor << typed);
      GgufWriter file = llama();
      file.add_f32(factor, 4);
      if (typed) file.add_text("llama.rope.scaling.type", "linear");
      const TemporaryFolder folder;
      const auto config = gguf_config(*open_file(folder, file));
      ASSERT_TRUE(config.ok()) << config.status().message();
      EXPECT_EQ(std::get<LinearRopeScaling>(config->rope.scaling).factor, 4.0);
    }
  }
}

TEST(GgufModel, ReadsLongropesTensors) {
  const std::vector<float> within(8, 1.5F);
  const std::vector<float> beyond(8, 6.0F);
  GgufWriter file = gguf_of_folder(golden_dir("phi3"), kF32);
  file.add_u32("phi3.rope.scaling.original_context_length", 128);
  file.add_f32("phi3.rope.scaling.attn_factor", 1.25);
  for (const auto& [name, factors] : {std::pair("rope_factors_short.weight", &within),
                                      std::pair("rope_factors_long.weight", &beyond)}) {
    std::string bytes;
    for (const float factor : *factors) bytes += raw(factor);
    file.add_tensor(name, {8}, kF32, bytes);
  }
  const TemporaryFolder folder;
  const auto opened = open_file(folder, file);
  for (const int64_t length : {128, 129}) {
    const auto config = gguf_config(*opened, length);
    ASSERT_TRUE(config.ok()) << config.status().message();
    const auto& scaling = std::get<LongRopeScaling>(config->rope.scaling);
    EXPECT_EQ(scaling.factors, std::vector<double>(8, length == 128 ? 1.5 : 6.0));
    EXPECT_EQ(scaling.attention_factor, 1.25);
  }
  model_of(file);  // expects that it loads
}

TEST(GgufModel, AWindowMakesALlamaAMistral) {
  const GgufWriter file = gguf_of_folder(golden_dir("mistral-window"), kF32);
  const TemporaryFolder folder;
  const auto config = gguf_config(*open_file(folder, file), 16);
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->architecture, "MistralForCausalLM");
}

/// All of Gemma's models divide scores by the root of a head's width, but those of 27 billion
/// parameters.
TEST(GgufModel, GemmasScoresAreDividedAsItsModelsDo) {
  for (const std::string name : {"gemma2", "gemma3"}) {
    GgufWriter file = gguf_of_folder(golden_dir(name), kF32);
    for (const char* key : {".block_count", ".attention.key_length", ".attention.value_length"}) {
      file.remove(name + key);
    }
    file.add_u32(name + ".block_count", name == "gemma2" ? 46 : 62);
    file.add_u32(name + ".attention.key_length", 32);
    file.add_u32(name + ".attention.value_length", 32);
    file.remove(name + ".rope.dimension_count");
    const TemporaryFolder folder;
    const auto config = gguf_config(*open_file(folder, file));
    ASSERT_TRUE(config.ok()) << config.status().message();
    EXPECT_EQ(config->head_dim, 32);
    EXPECT_DOUBLE_EQ(config->multipliers.scores, 1 / std::sqrt(64.0 / 4));
  }
}

TEST(GgufModel, CapsOfGemma2ThatAreNotGivenAreItsOwn) {
  GgufWriter file = gguf_of_folder(golden_dir("gemma2"), kF32);
  file.remove("gemma2.attn_logit_softcapping");
  file.remove("gemma2.final_logit_softcapping");
  const TemporaryFolder folder;
  const auto config = gguf_config(*open_file(folder, file));
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->score_cap, 50.0);
  EXPECT_EQ(config->logit_cap, 30.0);
}

}  // namespace
}  // namespace anyslot
