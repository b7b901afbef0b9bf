// What is said of a model before it is loaded is what an engine then makes of it.

#include "anyslot/inspect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/gguf/test_gguf_models.h"
#include "model/test_goldens.h"
#include "support/changed_model.h"
#include "support/engine_support.h"
#include "support/temporary_folder.h"

namespace anyslot {
namespace {

using namespace testing_support;
using namespace testing_gguf;
using nlohmann::json;
using testing::Contains;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

constexpr const char* kModel = ANYSLOT_MODEL_DIR;

ModelReport inspected(const std::string& path, const InspectOptions& options = {}) {
  Expected<ModelReport> report = inspect_model(path, options);
  EXPECT_TRUE(report.ok()) << report.status().message();
  return report.ok() ? std::move(*report) : ModelReport();
}

std::string engine_refusal(const std::string& path) {
  EngineConfig config;
  config.model_path = path;
  const Expected<Engine> engine = Engine::open(config);
  EXPECT_FALSE(engine.ok());
  return engine.ok() ? "" : engine.status().message();
}

/// What a report says of bfloat16 or float32.
MemoryReport memory_of(const ModelReport& report, ComputeType dtype,
                       WeightType weights = WeightType::kComputeType) {
  for (const MemoryReport& memory : report.memory) {
    if (memory.dtype == dtype && memory.weights == weights) return memory;
  }
  ADD_FAILURE() << "no such row";
  return {};
}

TEST(Inspect, TellsWhatTheEngineFinds) {
  for (const std::string name : kGoldenModels) {
    SCOPED_TRACE(name);
    const ModelReport report = inspected(golden_dir(name));
    EXPECT_THAT(report.problems, IsEmpty());
    EXPECT_THAT(report.missing_tensors, IsEmpty());
    EXPECT_THAT(report.unused_tensors, IsEmpty());
    EXPECT_EQ(report.gpu.ok(), std::ranges::count(kRefusedOnGpu, name) == 0);

    EngineConfig config;
    config.model_path = golden_dir(name);
    config.device = "reference";
    config.dtype = ComputeType::kFloat32;
    config.kv_cache_bytes = int64_t{1} << 20;
    const Engine engine = open_engine(config);
    const ModelInfo& model = engine.model();
    EXPECT_EQ(report.name, model.name);
    EXPECT_EQ(report.architecture, model.architecture);
    EXPECT_EQ(report.num_parameters, model.num_parameters);
    EXPECT_EQ(report.sizes.vocab_size, model.vocab_size);
    EXPECT_EQ(report.max_model_len, model.max_model_len);
    EXPECT_EQ(report.default_method, model.default_method);
    const MemoryReport float32 = memory_of(report, ComputeType::kFloat32);
    EXPECT_EQ(float32.kv_bytes_per_token, model.kv_bytes_per_token);
    EXPECT_EQ(memory_of(report, ComputeType::kBFloat16).kv_bytes_per_token,
              model.kv_bytes_per_token / 2);
    ASSERT_EQ(report.tensors.size(), 1);
    EXPECT_EQ(report.tensors[0].type, "F32");
    EXPECT_EQ(report.tensors[0].num_elements, model.num_parameters);
    // A tied embedding is multiplied with as well, in a form of its own.
    const int64_t embedding = model.vocab_size * report.sizes.hidden_size;
    EXPECT_EQ(float32.weight_bytes,
              4 * (model.num_parameters + (report.tied_embeddings ? embedding : 0)));
  }
}

TEST(Inspect, CountsTheDocumentsThatThePoolHolds) {
  EngineConfig config = float32_config(golden_dir("llama-plain"));
  config.kv_cache_bytes = 100'000;
  const int64_t blocks = open_engine(config).stats().total_blocks;
  ASSERT_GT(blocks, 3);
  const std::pair<int64_t, int64_t> blocks_of_tokens[] = {{1, 1}, {16, 1}, {17, 2}, {40, 3}};
  for (const auto& [tokens, blocks_each] : blocks_of_tokens) {
    const ModelReport report = inspected(golden_dir("llama-plain"),
                                         {.kv_cache_bytes = 100'000, .document_tokens = tokens});
    EXPECT_EQ(memory_of(report, ComputeType::kFloat32).documents, blocks / blocks_each) << tokens;
  }
  const ModelReport none = inspected(golden_dir("llama-plain"), {.kv_cache_bytes = 1000});
  EXPECT_EQ(memory_of(none, ComputeType::kFloat32).documents, 0);
  EXPECT_EQ(inspect_model(kModel, {.document_tokens = 0}).status().code(),
            StatusCode::kInvalidArgument);
}

TEST(Inspect, CountsKvOfFp8AsHalfOfBfloat16) {
  const InspectOptions fp8{.kv_cache_dtype = KvCacheType::kFp8E4M3};
  const MemoryReport half = memory_of(inspected(kModel, fp8), ComputeType::kBFloat16);
  const MemoryReport whole = memory_of(inspected(kModel), ComputeType::kBFloat16);
  EXPECT_EQ(2 * half.kv_bytes_per_token, whole.kv_bytes_per_token);
  EXPECT_EQ(half.documents, 2 * whole.documents);
  EXPECT_EQ(half.weight_bytes, whole.weight_bytes);
}

TEST(Inspect, TellsHowLayersDiffer) {
  const ModelReport gemma = inspected(golden_dir("gemma3-full"));
  ASSERT_EQ(gemma.windows.size(), 2);
  EXPECT_EQ(gemma.windows[0].window, 0);
  EXPECT_EQ(gemma.windows[0].num_layers, 1);
  EXPECT_EQ(gemma.windows[1].window, 12);
  EXPECT_EQ(gemma.windows[1].num_layers, 2);
  ASSERT_EQ(gemma.ropes.size(), 2);
  EXPECT_EQ(gemma.ropes[0].type, "default");
  EXPECT_EQ(gemma.ropes[0].num_layers, 2);
  EXPECT_EQ(gemma.ropes[1].type, "linear");
  EXPECT_EQ(gemma.ropes[1].factor, 8);
  // A window that no prompt reaches hides nothing.
  EXPECT_EQ(inspected(golden_dir("gemma3-full"), {.max_model_len = 12}).windows.size(), 1);

  const ModelReport smollm = inspected(golden_dir("smollm3-unturned"));
  ASSERT_EQ(smollm.ropes.size(), 2);
  EXPECT_THAT((std::vector{smollm.ropes[0].type, smollm.ropes[1].type}),
              testing::UnorderedElementsAre("default", "none"));
  EXPECT_EQ(smollm.ropes[0].num_layers + smollm.ropes[1].num_layers, smollm.sizes.num_layers);

  const ModelReport mixtral = inspected(golden_dir("mixtral"));
  EXPECT_GT(mixtral.sizes.num_experts, mixtral.sizes.experts_per_token);
  EXPECT_EQ(mixtral.num_expert_layers, mixtral.sizes.num_layers);
}

TEST(Inspect, ReadsTheBundledModel) {
  const ModelReport report = inspected(kModel);
  EXPECT_THAT(report.problems, IsEmpty());
  EXPECT_EQ(report.format, "safetensors, 2 files");
  ASSERT_TRUE(report.tokenizer);
  EXPECT_TRUE(report.tokenizer->byte_level);
  EXPECT_EQ(report.tokenizer->vocab_size, 4096);
  EXPECT_TRUE(report.has_rag_template);
  EXPECT_FALSE(report.chat_template);
  EXPECT_TRUE(report.block_trained);
  EXPECT_EQ(report.default_method, Method::kLazy);
  ASSERT_EQ(report.stop_tokens.size(), 1) << "the config's and the template's are the same";
  EXPECT_EQ(report.stop_tokens[0].name, "<|eot_id|>");
  EXPECT_EQ(report.num_parameters, report.tensors[0].num_elements);
  const int64_t whole = memory_of(report, ComputeType::kBFloat16).weight_bytes;
  const int64_t rounded = memory_of(report, ComputeType::kBFloat16, WeightType::kInt8).weight_bytes;
  EXPECT_LT(rounded, 0.65 * static_cast<double>(whole));
}

TEST(Inspect, ReadsAGgufFile) {
  const TemporaryFolder folder;
  GgufWriter writer = gguf_of_folder(kModel, kQ8_0);
  writer.add_text("tokenizer.chat_template",
                  "{% for d in documents %}{{ d.title }}{{ d.text }}{% endfor %}"
                  "{% for m in messages %}{{ m.content }}{% endfor %}");
  const ModelReport file = inspected(folder.write("demo.gguf", writer.bytes()));
  const ModelReport theirs = inspected(kModel);
  EXPECT_THAT(file.problems, IsEmpty());
  EXPECT_EQ(file.format, "GGUF version 3, architecture llama");
  EXPECT_EQ(file.architecture, theirs.architecture);
  EXPECT_EQ(file.num_parameters, theirs.num_parameters);
  EXPECT_EQ(file.tokenizer->vocab_size, theirs.tokenizer->vocab_size);
  EXPECT_EQ(file.stop_tokens[0].name, "<|eot_id|>");
  EXPECT_FALSE(file.block_trained) << "no rag_template.json beside it";
  ASSERT_EQ(file.tensors.size(), 2);
  EXPECT_EQ(file.tensors[0].type, "Q8_0");
  EXPECT_EQ(file.tensors[0].bytes, file.tensors[0].num_elements / 32 * 34);
  EXPECT_EQ(file.tensors[1].type, "F32");
  ASSERT_TRUE(file.chat_template);
  EXPECT_EQ(file.chat_template->takes_documents, file.chat_template->rendered);
  // Blocks are decoded to float32, and so the table of embeddings stays.
  EXPECT_EQ(memory_of(file, ComputeType::kBFloat16).weight_bytes,
            memory_of(theirs, ComputeType::kBFloat16).weight_bytes +
                2 * theirs.sizes.vocab_size * theirs.sizes.hidden_size);
}

TEST(Inspect, SaysWhetherAChatTemplateTakesDocuments) {
  const ChangedModel model("llama-plain", json::object());
  model.folder().write("chat_template.jinja", "{% for m in messages %}{{ m.content }}{% endfor %}");
  const ModelReport report = inspected(model.path());
  ASSERT_TRUE(report.chat_template);
  EXPECT_FALSE(report.chat_template->takes_documents);
}

struct Refused {
  const char* name;
  const char* golden;
  json fields;
  const char* problem;
};

const Refused kRefused[] = {
    {"Rope",
     "llama-plain",
     {{"rope_parameters", {{"rope_type", "dynamic"}}}},
     "rope_type is \"dynamic\""},
    {"Architecture",
     "llama-plain",
     {{"architectures", json::array({"DeepseekV3ForCausalLM"})}},
     "latent attention"},
    {"Quantized",
     "llama-plain",
     {{"quantization_config", {{"quant_method", "fp8"}}}},
     "quantized weights"},
    {"HeadWidth", "llama-plain", {{"head_dim", 8}}, "no CPU attention kernel serves head_dim 8"},
    {"MissingLayer",
     "llama-plain",
     {{"num_hidden_layers", 4}},
     "no tensor \"model.layers.3.input_layernorm.weight\""},
    {"Shape", "mixtral", {{"intermediate_size", 32}}, "where the model's config needs"}};

TEST(Inspect, ReportsWhatCannotBeServedAndWhy) {
  for (const Refused& refused : kRefused) {
    SCOPED_TRACE(refused.name);
    const ChangedModel model(refused.golden, refused.fields);
    const ModelReport report = inspected(model.path());
    ASSERT_THAT(report.problems, Not(IsEmpty()));
    EXPECT_EQ(report.problems[0].message(), engine_refusal(model.path()));
    EXPECT_THAT(report.problems[0].message(), HasSubstr(refused.problem));
    EXPECT_EQ(report.sizes.hidden_size, 64);
    EXPECT_EQ(report.sizes.vocab_size, 320);
    EXPECT_EQ(report.sizes.num_kv_heads, 2);
    EXPECT_THAT(report.tensors, Not(IsEmpty()));
  }
}

TEST(Inspect, NamesMissingAndUnusedTensors) {
  const ModelReport more =
      inspected(ChangedModel("llama-plain", {{"num_hidden_layers", 4}}).path());
  EXPECT_EQ(more.missing_tensors.size(), 9) << "those of a layer";
  EXPECT_THAT(more.missing_tensors, Each(StartsWith("model.layers.3.")));
  const ModelReport fewer =
      inspected(ChangedModel("llama-plain", {{"num_hidden_layers", 2}}).path());
  EXPECT_THAT(fewer.problems, IsEmpty()) << "in a folder, tensors may stand unused";
  EXPECT_EQ(fewer.unused_tensors.size(), 9);
  EXPECT_THAT(fewer.unused_tensors, Contains("model.layers.2.mlp.down_proj.weight"));
}

TEST(Inspect, TellsAllThatIsWrong) {
  const ChangedModel model("llama-plain", {{"quantization_config", {{"quant_method", "fp8"}}}});
  model.folder().write("tokenizer.json", R"({"version": "2.0"})");
  const ModelReport report = inspected(model.path());
  ASSERT_EQ(report.problems.size(), 2);
  EXPECT_THAT(report.problems[0].message(), HasSubstr("tokenizer.json"));
  EXPECT_THAT(report.problems[1].message(), HasSubstr("quantized weights"));
  EXPECT_EQ(report.problems[0].message(), engine_refusal(model.path()));
}

TEST(Inspect, ABrokenTokenizerIsOneProblemAlsoWithAChatTemplate) {
  GgufWriter writer = gguf_of_folder(golden_dir("llama-plain"), kF32);
  writer.add_i32s("tokenizer.ggml.tokens", {1, 2});
  const TemporaryFolder folder;
  for (const bool has_template : {false, true}) {
    if (has_template) writer.add_text("tokenizer.chat_template", "{{ messages[0].content }}");
    const std::string path = folder.write("model.gguf", writer.bytes());
    const ModelReport report = inspected(path);
    ASSERT_EQ(report.problems.size(), 1);
    EXPECT_THAT(report.problems[0].message(), HasSubstr("tokenizer.ggml.tokens must be a list of"));
    EXPECT_EQ(report.problems[0].message(), engine_refusal(path));
    EXPECT_EQ(report.chat_template.has_value(), has_template);
  }
}

TEST(Inspect, NeedsNoWeights) {
  const ChangedModel model("llama-plain", json::object());
  std::filesystem::remove(model.folder().file("model.safetensors"));
  const ModelReport report = inspected(model.path());
  ASSERT_EQ(report.problems.size(), 1);
  EXPECT_EQ(report.problems[0].message(), engine_refusal(model.path()));
  EXPECT_EQ(report.num_parameters, inspected(golden_dir("llama-plain")).num_parameters);
  EXPECT_THAT(report.missing_tensors, IsEmpty());
}

TEST(Inspect, ReportsAGgufFileThatCannotBeServed) {
  const TemporaryFolder folder;
  GgufWriter strange_type = gguf_of_folder(golden_dir("llama-plain"), kF32);
  for (auto& tensor : strange_type.tensors) {
    if (tensor.name == "blk.1.attn_q.weight") tensor.type = 24;
  }
  const std::string typed = folder.write("i8.gguf", strange_type.bytes());
  const ModelReport report = inspected(typed);
  ASSERT_EQ(report.tensors.size(), 2);
  EXPECT_EQ(report.tensors[1].type, "I8");
  ASSERT_EQ(report.problems.size(), 1);
  EXPECT_EQ(report.problems[0].message(), engine_refusal(typed));

  GgufWriter strange_family = gguf_of_folder(golden_dir("llama-plain"), kF32);
  for (auto& [key, value] : strange_family.metadata) {
    if (key.starts_with("llama.")) key = "gptneox." + key.substr(6);
  }
  strange_family.remove("general.architecture");
  strange_family.add_text("general.architecture", "gptneox");
  strange_family.add_u32("gptneox.expert_count", 8);
  const std::string other = folder.write("other.gguf", strange_family.bytes());
  const ModelReport unknown = inspected(other);
  EXPECT_EQ(unknown.architecture, "gptneox");
  EXPECT_EQ(unknown.sizes.num_layers, 3);
  EXPECT_EQ(unknown.sizes.num_kv_heads, 2);
  EXPECT_EQ(unknown.sizes.vocab_size, 320);
  EXPECT_EQ(unknown.sizes.num_experts, 8);
  ASSERT_EQ(unknown.problems.size(), 1);
  EXPECT_EQ(unknown.problems[0].message(), engine_refusal(other));
}

TEST(Inspect, FailsLikeTheEngineWhereNothingCanBeRead) {
  const TemporaryFolder empty;
  const ChangedModel broken("llama-plain", json::object());
  broken.folder().write("config.json", "{\"architectures\": [");
  const ChangedModel nameless("llama-plain", {{"architectures", nullptr}});
  const ChangedModel truncated("llama-plain", json::object());
  truncated.folder().write("model.safetensors",
                           read_bytes(truncated.folder().file("model.safetensors")).substr(0, 100));
  const TemporaryFolder two;
  two.write("a.gguf", "");
  two.write("b.gguf", "");
  for (const std::string& path : {empty.path(), broken.path(), nameless.path(), truncated.path(),
                                  two.path(), two.file("a.gguf")}) {
    SCOPED_TRACE(path);
    const Expected<ModelReport> report = inspect_model(path, {});
    ASSERT_FALSE(report.ok());
    EXPECT_EQ(report.status().message(), engine_refusal(path));
  }
}

}  // namespace
}  // namespace anyslot
