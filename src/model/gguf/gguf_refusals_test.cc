#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "model/gguf/gguf_config.h"
#include "model/gguf/gguf_file.h"
#include "model/gguf/gguf_weights.h"
#include "model/gguf/test_gguf_models.h"
#include "model/test_decoder.h"
#include "model/test_files.h"
#include "model/test_goldens.h"

// What files are refused, and in which words.

namespace anyslot {
namespace {

using namespace testing_gguf;
using ::testing::AllOf;
using ::testing::HasSubstr;

/// What loading the file says, in the order in which the engine loads.
Status load(const GgufWriter& file, int64_t max_model_len = 0) {
  const TemporaryFolder folder;
  const auto opened = GgufFile::open(folder.write("model.gguf", file.bytes()));
  if (!opened.ok()) return opened.status();
  const auto config = gguf_config(**opened, max_model_len);
  if (!config.ok()) return config.status();
  auto weights = gguf_weights(*opened, *config, 2);
  if (!weights.ok()) return weights.status();
  const auto backend = make_backend("reference", DType::kFloat32);
  return Decoder::load(std::move(*weights), *config, *backend).status();
}
GgufWriter llama() { return gguf_of_folder(golden_dir("llama-plain"), kF32); }

struct Refusal {
  const char* name;
  void (*change)(GgufWriter& file);
  std::string message;
};

const std::vector<Refusal> kRefusals = {
    {"NoArchitecture", [](GgufWriter& f) { f.remove("general.architecture"); },
     "general.architecture is missing"},
    {"Architecture",
     [](GgufWriter& f) {
       f.remove("general.architecture");
       f.add_text("general.architecture", "gptneox");
     },
     "architecture \"gptneox\" is not supported in a GGUF file; supported: gemma2, gemma3, "
     "granite"},
    {"Split", [](GgufWriter& f) { f.add("split.count", GgufValueType::kUint16, uint16_t{3}); },
     "split.count is 3: the model is split into that many files; join them first: "
     "llama-gguf-split --merge"},
    {"Adapter", [](GgufWriter& f) { f.add_text("general.type", "adapter"); },
     "general.type is \"adapter\""},
    {"QuantizationVersion",
     [](GgufWriter& f) {
       f.add_u32("general.quantization_version", 1);
       f.add_tensor("spare.weight", {32}, kQ8_0, std::string(34, '\0'));
     },
     "general.quantization_version is 1; only 2 can be read"},
    {"Experts", [](GgufWriter& f) { f.add_u32("llama.expert_count", 8); },
     "llama.expert_count asks for something that is not supported"},
    {"Capped", [](GgufWriter& f) { f.add_f32("llama.final_logit_softcapping", 30); },
     "llama.final_logit_softcapping asks for something that is not supported"},
    {"NotCausal", [](GgufWriter& f) { f.add_bool("llama.attention.causal", false); },
     "llama.attention.causal asks for"},
    {"MissingKey", [](GgufWriter& f) { f.remove("llama.block_count"); },
     "llama.block_count is missing"},
    {"WrongType",
     [](GgufWriter& f) {
       f.remove("llama.block_count");
       f.add_text("llama.block_count", "three");
     },
     "llama.block_count must be a whole number"},
    {"Limit",
     [](GgufWriter& f) {
       f.remove("llama.block_count");
       f.add_u32("llama.block_count", 4000000000U);
     },
     "its metadata as config.json: num_hidden_layers is 4000000000; it must be"},
    {"UnknownKey", [](GgufWriter& f) { f.add_f32("llama.attention.magic", 1); },
     "\"llama.attention.magic\" is set, and what it means is not known here"},
    {"HeadsDiffer",
     [](GgufWriter& f) {
       f.remove("llama.attention.head_count_kv");
       f.add_i32s("llama.attention.head_count_kv", {2, 1, 2});
     },
     "llama.attention.head_count_kv differs from layer to layer"},
    {"WidthsDiffer",
     [](GgufWriter& f) {
       f.remove("llama.attention.value_length");
       f.add_u32("llama.attention.value_length", 8);
     },
     "llama.attention.value_length differs from llama.attention.key_length"},
    {"VocabularyDiffers",
     [](GgufWriter& f) {
       f.remove("llama.vocab_size");
       f.add_u32("llama.vocab_size", 319);
     },
     "llama.vocab_size is 319, but the embedding has 320 rows"},
    {"PartialRotary",
     [](GgufWriter& f) {
       f.remove("llama.rope.dimension_count");
       f.add_u32("llama.rope.dimension_count", 8);
     },
     "partial_rotary_factor is not 1, which is not supported"},
    {"RotaryTooWide",
     [](GgufWriter& f) {
       f.remove("llama.rope.dimension_count");
       f.add_u32("llama.rope.dimension_count", 17);
     },
     "llama.rope.dimension_count is 17; heads have 16 dimensions"},
    {"Scaling", [](GgufWriter& f) { f.add_text("llama.rope.scaling.type", "dynamic"); },
     "llama.rope.scaling.type is \"dynamic\", which is not supported"},
    {"LongropeWithoutFactors",
     [](GgufWriter& f) { f.add_text("llama.rope.scaling.type", "longrope"); },
     "llama.rope.scaling.type is \"longrope\", but its tensors of factors are missing"},
    {"YarnAttention", [](GgufWriter& f) { f.add_f32("llama.rope.scaling.yarn_attn_factor", 0.8); },
     "llama.rope.scaling.yarn_attn_factor is set, which is not supported"},
    {"TwoScalings",
     [](GgufWriter& f) {
       f.add_text("llama.rope.scaling.type", "linear");
       f.add_tensor("rope_freqs.weight", {8}, kF32, std::string(32, '\0'));
     },
     "llama.rope.scaling.type does not go with the tensor \"rope_freqs.weight\""},
    {"LinearWithoutFactor", [](GgufWriter& f) { f.add_text("llama.rope.scaling.type", "linear"); },
     "llama.rope.scaling.factor is missing"},
    {"FactorOfNone",
     [](GgufWriter& f) {
       f.add_text("llama.rope.scaling.type", "none");
       f.add_f32("llama.rope.scale_linear", 4);
     },
     "llama.rope.scaling.factor does not go with the type \"none\""},
    {"FactorBesideFactors",
     [](GgufWriter& f) {
       f.add_f32("llama.rope.scaling.factor", 8);
       f.add_tensor("rope_freqs.weight", {8}, kF32, std::string(32, '\1'));
     },
     "llama.rope.scaling.factor does not go with tensors of factors"},
    {"AttentionBesideFactors",
     [](GgufWriter& f) {
       f.add_f32("llama.rope.scaling.attn_factor", 1.2F);
       f.add_tensor("rope_freqs.weight", {8}, kF32, std::string(32, '\1'));
     },
     "llama.rope.scaling.attn_factor is not 1.0"},
    {"FactorsOfZero",
     [](GgufWriter& f) { f.add_tensor("rope_freqs.weight", {8}, kF32, std::string(32, '\0')); },
     "short_factor holds 0.0"},
    {"FactorsTooFew",
     [](GgufWriter& f) { f.add_tensor("rope_freqs.weight", {1}, kF32, raw(1.0F)); },
     "short_factor has 1 numbers for 8 pairs of dimensions"},
    {"FactorsInHalf",
     [](GgufWriter& f) { f.add_tensor("rope_freqs.weight", {8}, kF16, std::string(16, '\0')); },
     "tensor \"rope_freqs.weight\" must be a list of type F32"},
    {"EndTokenOutside", [](GgufWriter& f) { f.add_u32("tokenizer.ggml.eot_token_id", 320); },
     "eos_token_id holds 320"},
    {"NoEmbedding",
     [](GgufWriter& f) {
       std::erase_if(f.tensors, [](const auto& t) { return t.name == "token_embd.weight"; });
     },
     "no tensor \"token_embd.weight\""},
    {"NoTensor",
     [](GgufWriter& f) {
       std::erase_if(f.tensors, [](const auto& t) { return t.name == "blk.1.attn_q.weight"; });
     },
     "no tensor \"blk.1.attn_q.weight\""},
    {"Shape",
     [](GgufWriter& f) {
       for (auto& tensor : f.tensors) {
         if (tensor.name == "blk.2.ffn_up.weight")
           std::swap(tensor.dimensions[0], tensor.dimensions[1]);
       }
     },
     "tensor \"blk.2.ffn_up.weight\" has shape [64, 96], where the metadata need [96, 64]"},
    {"Type",
     [](GgufWriter& f) {
       for (auto& tensor : f.tensors) {
         if (tensor.name == "blk.1.attn_q.weight") tensor.type = 24;
       }
     },
     "tensor \"blk.1.attn_q.weight\" is of type I8, which is not supported; take a file whose "
     "tensors are of these types: F32, F16"},
    {"StrangeTensor",
     [](GgufWriter& f) { f.add_tensor("blk.0.attn_sinks.weight", {1}, kF32, "abcd"); },
     "tensor \"blk.0.attn_sinks.weight\" has no place in a model of architecture llama"},
    {"BiasOfSome",
     [](GgufWriter& f) { f.add_tensor("blk.0.attn_q.bias", {64}, kF32, std::string(256, '\0')); },
     "no tensor \"blk.0.attn_k.bias\""},
};

TEST(GgufRefusals, RefusesByName) {
  ASSERT_TRUE(load(llama()).ok()) << load(llama()).message();
  for (const Refusal& refusal : kRefusals) {
    SCOPED_TRACE(refusal.name);
    GgufWriter file = llama();
    refusal.change(file);
    const Status status = load(file);
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
    EXPECT_THAT(status.message(), AllOf(HasSubstr("model.gguf: "), HasSubstr(refusal.message)));
  }
}

TEST(GgufRefusals, RefusesWindowsWhereNoneIsKnown) {
  GgufWriter file = gguf_of_folder(golden_dir("qwen2"), kF32);
  file.add_u32("qwen2.attention.sliding_window", 1024);
  EXPECT_THAT(load(file).message(), HasSubstr("qwen2.attention.sliding_window is set"));
}

TEST(GgufRefusals, GraniteNeedsItsMultipliers) {
  GgufWriter file = gguf_of_folder(golden_dir("granite"), kF32);
  file.remove("granite.attention.scale");
  EXPECT_THAT(load(file).message(), HasSubstr("granite.attention.scale is missing"));
}

TEST(GgufRefusals, NamesAFileThatIsNotThere) {
  const TemporaryFolder folder;
  const Status status = GgufFile::open(folder.file("absent.gguf")).status();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr("absent.gguf"));
}
}  // namespace
}  // namespace anyslot
