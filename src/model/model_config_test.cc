#include "model/model_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <variant>
#include <vector>

#include "model/architecture.h"
#include "model/test_config.h"

namespace anyslot {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(ModelConfig, ReadsTheGoldens) {
  const auto config = load_model_config(std::string(ANYSLOT_GOLDENS_DIR) + "/tiny/llama-plain");
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->architecture, "LlamaForCausalLM");
  EXPECT_EQ(config->vocab_size, 320);
  EXPECT_EQ(config->hidden_size, 64);
  EXPECT_EQ(config->intermediate_size, 96);
  EXPECT_EQ(config->num_layers, 3);
  EXPECT_EQ(config->num_heads, 4);
  EXPECT_EQ(config->num_kv_heads, 2);
  EXPECT_EQ(config->head_dim, 16);
  EXPECT_FLOAT_EQ(config->rms_norm_eps, 1e-6F);
  EXPECT_EQ(config->rope.theta, 10000.0);
  EXPECT_EQ(config->max_position_embeddings, 256);
  EXPECT_FALSE(config->tie_word_embeddings);
  EXPECT_THAT(config->eos_token_ids, ElementsAre(2));
}

TEST(ModelConfig, FillsInWhatMayBeAbsent) {
  const auto config = load_config(kTestConfig);
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->num_kv_heads, 4);
  EXPECT_EQ(config->head_dim, 16);
  EXPECT_EQ(config->rope.theta, 10000.0);
  EXPECT_FALSE(config->tie_word_embeddings);
  EXPECT_THAT(config->eos_token_ids, IsEmpty());
}

TEST(ModelConfig, GenerationConfigHasTheLastWordOnStops) {
  const std::string config = config_with("\"eos_token_id\": 2");
  EXPECT_THAT(load_config(config)->eos_token_ids, ElementsAre(2));
  EXPECT_THAT(load_config(config, R"({"eos_token_id": [7, 8]})")->eos_token_ids, ElementsAre(7, 8));
  EXPECT_THAT(load_config(config, R"({"eos_token_id": null})")->eos_token_ids, ElementsAre(2));
  EXPECT_THAT(load_config(config, R"({"eos_token_id": [7, 100]})").status().message(),
              AllOf(HasSubstr("generation_config.json: eos_token_id holds 100"),
                    HasSubstr("from 0 to 99")));
  EXPECT_THAT(load_config(config, "{").status().message(),
              HasSubstr("generation_config.json: invalid JSON at line 1"));
}

struct BadConfig {
  const char* fields;
  const char* message;
};

void PrintTo(const BadConfig& bad, std::ostream* out) { *out << bad.fields; }

const BadConfig kBadConfigs[] = {
    {R"("architectures":["MambaForCausalLM"])",
     "architecture \"MambaForCausalLM\" is not supported; supported: Gemma2ForCausalLM, "
     "Gemma3ForCausalLM, "},
    {R"("architectures":[])", "architectures is missing"},
    {R"("architectures":"LlamaForCausalLM")", "it must be a list of strings"},
    {R"("vocab_size":0)", "vocab_size is 0; it must be a whole number from 1 to"},
    {R"("vocab_size":null)", "vocab_size is missing"},
    {R"("vocab_size":99999999999999999999)", "vocab_size is 1e+20"},
    {R"("hidden_size":-64)", "hidden_size is -64"},
    {R"("hidden_size":64.0)", "hidden_size is 64.0"},
    {R"("hidden_size":"64")", "hidden_size is \"64\""},
    {R"("hidden_size":[64])", "hidden_size is a list"},
    {R"("hidden_size":66)", "head_dim is missing and hidden_size (66) is no multiple"},
    {R"("intermediate_size":1e18)", "intermediate_size is 1e+18"},
    {R"("num_hidden_layers":1000000)", "num_hidden_layers is 1000000"},
    {R"("num_attention_heads":0)", "num_attention_heads is 0"},
    {R"("num_key_value_heads":3)", "num_attention_heads (4) must be a multiple of it"},
    {R"("head_dim":15)", "head_dim is 15; it must be even"},
    {R"("head_dim":100000)", "head_dim is 100000"},
    {R"("rms_norm_eps":0)", "rms_norm_eps is 0; it must be a number above 0"},
    {R"("rms_norm_eps":"1e-6")", "rms_norm_eps is \"1e-6\""},
    {R"("max_position_embeddings":0)", "max_position_embeddings is 0"},
    {R"("hidden_act":"gelu")", "hidden_act is \"gelu\", which is not supported"},
    {R"("attention_bias":1)", "attention_bias is 1; it must be true or false"},
    {R"("mlp_bias":"no")", "mlp_bias is \"no\"; it must be true or false"},
    {R"("tie_word_embeddings":1)", "tie_word_embeddings is 1; it must be true or false"},
    {R"("quantization_config":{"quant_method":"fp8"})", "quantized weights are not supported"},
    {R"("eos_token_id":100)", "eos_token_id holds 100"},
    {R"("eos_token_id":[1,"x"])", "eos_token_id holds \"x\""},
};

class BadModelConfig : public ::testing::TestWithParam<BadConfig> {};

TEST_P(BadModelConfig, IsRefusedByName) {
  const auto config = load_config(config_with(GetParam().fields));
  ASSERT_FALSE(config.ok());
  EXPECT_EQ(config.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(
      config.status().message(),
      AllOf(HasSubstr("config.json: "), HasSubstr(GetParam().message), Not(HasSubstr("\n"))));
}

INSTANTIATE_TEST_SUITE_P(, BadModelConfig, ::testing::ValuesIn(kBadConfigs));

TEST(ModelConfig, BrokenFilesNameTheLine) {
  EXPECT_THAT(load_config("{\n  \"a\": 1,\n  \"b\" 2\n}").status().message(),
              HasSubstr("config.json: invalid JSON at line 3, column 7"));
  EXPECT_THAT(load_config("").status().message(), HasSubstr("invalid JSON at line 1, column 1"));
  EXPECT_THAT(load_config("[]").status().message(), HasSubstr("not a JSON object"));
  EXPECT_THAT(load_config("{\"a\":1,\"a\":2}").status().message(), HasSubstr("\"a\" stands twice"));
  const TemporaryFolder folder;
  const Status status = load_model_config(folder.path()).status();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr("config.json: cannot be opened: No such file"));
}

TEST(ModelConfig, FingerprintCoversWhatChangesTheMath) {
  const ModelConfig config = *load_config(kTestConfig);
  const auto fingerprint = [](const std::string& fields) {
    const auto changed = load_config(config_with(fields));
    EXPECT_TRUE(changed.ok()) << changed.status().message();
    return changed->fingerprint();
  };
  EXPECT_NE(config.fingerprint(), fingerprint("\"rms_norm_eps\": 2e-5"));
  EXPECT_NE(config.fingerprint(), fingerprint("\"num_key_value_heads\": 2"));
  EXPECT_EQ(config.fingerprint(), fingerprint("\"eos_token_id\": 5"));
}

/// What a config of a family says to a length of prompts; empty when it can be used.
std::string refusal(const std::string& architecture, const std::string& fields,
                    int64_t max_model_len = 0) {
  const TemporaryFolder folder;
  const std::string all = "\"architectures\": [\"" + architecture + "\"]" + fields;
  folder.write("config.json", config_with(all));
  return load_model_config(folder.path(), max_model_len).status().message();
}

/// The window of each layer of a config of a family; empty when it is refused.
std::vector<int64_t> windows(const std::string& architecture, const std::string& fields,
                             int64_t max_model_len = 0) {
  const TemporaryFolder folder;
  const std::string all = "\"architectures\": [\"" + architecture + "\"]" + fields;
  folder.write("config.json", config_with(all));
  const auto config = load_model_config(folder.path(), max_model_len);
  EXPECT_TRUE(config.ok()) << config.status().message();
  std::vector<int64_t> result;
  for (int i = 0; config.ok() && i < config->num_layers; ++i) {
    result.push_back(config->window_of(i));
  }
  return result;
}

TEST(Families, WindowsThatAreAsLongAsPromptsAreNone) {
  for (const char* name : {"MistralForCausalLM", "Phi3ForCausalLM"}) {
    EXPECT_THAT(windows(name, ""), ElementsAre(0, 0, 0));
    EXPECT_THAT(windows(name, R"(,"sliding_window":null)"), ElementsAre(0, 0, 0));
    EXPECT_THAT(windows(name, R"(,"sliding_window":256)"), ElementsAre(0, 0, 0));
    EXPECT_THAT(windows(name, R"(,"sliding_window":255)"), ElementsAre(255, 255, 255));
    EXPECT_THAT(windows(name, R"(,"sliding_window":255)", 255), ElementsAre(0, 0, 0));
    EXPECT_THAT(windows(name, R"(,"sliding_window":256)", 257), ElementsAre(256, 256, 256));
  }
}

TEST(Families, TellWhichLayersHaveTheWindow) {
  const std::string listed =
      R"(,"layer_types":["full_attention","sliding_attention","full_attention"])";
  const std::string used = R"(,"sliding_window":16,"use_sliding_window":true)";
  EXPECT_THAT(windows("MistralForCausalLM", R"(,"sliding_window":16)" + listed),
              ElementsAre(0, 16, 0));
  for (const char* name : {"Qwen2ForCausalLM", "Qwen3ForCausalLM"}) {
    EXPECT_THAT(windows(name, R"(,"sliding_window":16)"), ElementsAre(0, 0, 0)) << "not in use";
    EXPECT_THAT(windows(name, used), ElementsAre(0, 0, 0)) << "the first 28 layers have none";
    EXPECT_THAT(windows(name, used + R"(,"max_window_layers":1)"), ElementsAre(0, 16, 16));
    EXPECT_THAT(windows(name, used + listed), ElementsAre(0, 16, 0));
  }
  EXPECT_THAT(windows("SmolLM3ForCausalLM", used + R"(,"no_rope_layers":[1,0,1])"),
              ElementsAre(0, 16, 0))
      << "layers that are not turned have it";
  EXPECT_THAT(windows("Gemma2ForCausalLM", R"(,"sliding_window":16)"), ElementsAre(16, 0, 16));
  EXPECT_THAT(windows("Gemma3ForCausalLM", R"(,"sliding_window":16,"sliding_window_pattern":2)"),
              ElementsAre(16, 0, 16));
  EXPECT_THAT(windows("Gemma3ForCausalLM", R"(,"sliding_window":16)"), ElementsAre(16, 16, 16))
      << "every sixth layer has none";
}

TEST(Families, RefuseWindowsWithoutMeaning) {
  const std::string listed =
      R"(,"layer_types":["full_attention","sliding_attention","full_attention"])";
  EXPECT_THAT(refusal("MistralForCausalLM", listed), HasSubstr("sliding_window, its length, is"));
  EXPECT_THAT(refusal("Qwen2ForCausalLM", R"(,"sliding_window":16)" + listed),
              HasSubstr("use_sliding_window is not true"));
  EXPECT_THAT(refusal("LlamaForCausalLM", R"(,"sliding_window":16)" + listed),
              HasSubstr("layer_types holds \"sliding_attention\", which is not supported"));
  EXPECT_THAT(refusal("MistralForCausalLM", R"(,"layer_types":["full_attention"])"),
              HasSubstr("layer_types has 1 names for 3 layers"));
  EXPECT_THAT(refusal("Gemma2ForCausalLM", ""), HasSubstr("sliding_window is missing"));
}

TEST(Families, RefuseWhatTheyDoNotKnow) {
  EXPECT_THAT(refusal("Gemma3ForConditionalGeneration", ""), HasSubstr("it needs images"));
  EXPECT_THAT(refusal("Gemma3ForCausalLM", R"(,"sliding_window":9,"attn_logit_softcapping":50)"),
              HasSubstr("attn_logit_softcapping is set"));
  EXPECT_THAT(refusal("Gemma2ForCausalLM", R"(,"sliding_window":9,"hidden_activation":"gelu")"),
              HasSubstr("hidden_activation is \"gelu\""));
  EXPECT_THAT(
      refusal("Gemma3ForCausalLM", R"(,"sliding_window":9,"use_bidirectional_attention":true)"),
      HasSubstr("use_bidirectional_attention is true"));
  EXPECT_THAT(refusal("MixtralForCausalLM", R"(,"num_experts_per_tok":2)"),
              HasSubstr("num_experts is missing"));
  EXPECT_THAT(refusal("MixtralForCausalLM", R"(,"num_local_experts":4,"num_experts_per_tok":5)"),
              HasSubstr("num_experts_per_tok is 5; it must be a whole number from 1 to 4"));
  EXPECT_THAT(refusal("Qwen3ForCausalLM", R"(,"layer_types":["linear_attention"])"),
              HasSubstr("layer_types holds \"linear_attention\", which is not supported"));
  EXPECT_THAT(refusal("GraniteForCausalLM", R"(,"logits_scaling":0)"),
              HasSubstr("logits_scaling is 0"));
  EXPECT_THAT(refusal("SmolLM3ForCausalLM", R"(,"no_rope_layers":[1,0])"),
              HasSubstr("no_rope_layers has 2 numbers for 3 layers"));
  EXPECT_THAT(refusal("SmolLM3ForCausalLM", R"(,"no_rope_layers":[1,0,2])"),
              HasSubstr("no_rope_layers holds 2"));
  EXPECT_THAT(refusal("Phi3ForCausalLM", R"(,"partial_rotary_factor":0.2)"),
              HasSubstr("partial_rotary_factor turns 3 of 16 dimensions"));
  for (const char* name : {"LlamaForCausalLM", "Qwen3ForCausalLM", "Olmo2ForCausalLM"}) {
    EXPECT_THAT(refusal(name, R"(,"partial_rotary_factor":0.5)"),
                HasSubstr("partial_rotary_factor is not 1"));
  }
}

TEST(Families, GemmasCapsAndScales) {
  const auto gemma = [](const std::string& architecture, const std::string& fields) {
    const std::string all = "\"architectures\":[\"" + architecture + "\"],\"sliding_window\":16";
    return *load_config(config_with(all + fields));
  };
  const ModelConfig two = gemma("Gemma2ForCausalLM", "");
  EXPECT_EQ(two.score_cap, 50);
  EXPECT_EQ(two.logit_cap, 30);
  EXPECT_EQ(two.multipliers.embedding, 8);
  EXPECT_EQ(two.multipliers.scores, 1.0 / 16);
  EXPECT_TRUE(two.tie_word_embeddings);
  const std::string nulls = R"(,"attn_logit_softcapping":null,"final_logit_softcapping":null)";
  EXPECT_EQ(gemma("Gemma2ForCausalLM", nulls).score_cap, 0);
  EXPECT_EQ(gemma("Gemma2ForCausalLM", nulls).logit_cap, 0);
  EXPECT_EQ(gemma("Gemma3ForCausalLM", R"(,"final_logit_softcapping":20)").logit_cap, 20);
}

TEST(Families, Gemma3HasTwoRopesInBothSpellings) {
  const auto gemma = [](const std::string& fields) {
    const std::string all = R"("architectures":["Gemma3ForCausalLM"],"sliding_window":16)";
    return *load_config(config_with(all + fields));
  };
  const ModelConfig plain = gemma("");
  EXPECT_EQ(plain.rope.theta, 1e6);
  EXPECT_EQ(plain.local_rope->theta, 1e4);
  const ModelConfig older = gemma(R"(,"rope_theta":5e5,"rope_local_base_freq":2e4,)"
                                  R"("rope_scaling":{"rope_type":"linear","factor":8.0})");
  const ModelConfig newer = gemma(
      R"(,"rope_parameters":{"full_attention":{"rope_type":"linear","factor":8.0,"rope_theta":5e5},)"
      R"("sliding_attention":{"rope_type":"default","rope_theta":2e4}})");
  const ModelConfig theta_around = gemma(
      R"(,"rope_theta":5e5,"rope_local_base_freq":2e4,"rope_parameters":{"full_attention":)"
      R"({"rope_type":"linear","factor":8.0}},"rope_scaling":{"type":"linear","factor":8.0})");
  for (const ModelConfig& config : {older, newer, theta_around}) {
    EXPECT_EQ(config.rope.theta, 5e5);
    ASSERT_TRUE(std::holds_alternative<LinearRopeScaling>(config.rope.scaling));
    EXPECT_EQ(std::get<LinearRopeScaling>(config.rope.scaling).factor, 8);
    EXPECT_EQ(config.local_rope->theta, 2e4);
    EXPECT_TRUE(std::holds_alternative<std::monostate>(config.local_rope->scaling));
  }
  EXPECT_EQ(older.fingerprint(), newer.fingerprint());
}

TEST(Families, Qwen3MoeSaysWhichLayersHaveExperts) {
  const auto experts = [](const std::string& fields) {
    const std::string all =
        R"("architectures":["Qwen3MoeForCausalLM"],"num_hidden_layers":4,"num_experts":8,)"
        R"("num_experts_per_tok":2,"moe_intermediate_size":32)";
    return load_config(config_with(all + fields))->experts;
  };
  EXPECT_EQ(experts("").layers, std::vector<bool>(4, true));
  EXPECT_FALSE(experts("").normalized);
  EXPECT_EQ(experts(R"(,"decoder_sparse_step":2)").layers,
            (std::vector<bool>{false, true, false, true}));
  EXPECT_EQ(experts(R"(,"mlp_only_layers":[0,3])").layers,
            (std::vector<bool>{false, true, true, false}));
}

TEST(Families, SmolLM3TurnsThreeOfFourLayers) {
  const auto turned = [](const std::string& fields) {
    const std::string all = R"("architectures":["SmolLM3ForCausalLM"],"num_hidden_layers":8)";
    return load_config(config_with(all + fields))->turned_layers;
  };
  EXPECT_EQ(turned(""), (std::vector<bool>{true, true, true, false, true, true, true, false}));
  EXPECT_EQ(turned(R"(,"no_rope_layer_interval":5)"),
            (std::vector<bool>{true, true, true, true, false, true, true, true}));
  EXPECT_EQ(turned(R"(,"no_rope_layers":[0,1,1,1,1,1,1,0])"),
            (std::vector<bool>{false, true, true, true, true, true, true, false}));
}

TEST(Families, TheirOwnFieldsEnterTheFingerprint) {
  const auto fingerprint = [](const std::string& architecture, const std::string& fields) {
    const std::string all = "\"architectures\": [\"" + architecture + "\"]" + fields;
    return load_config(config_with(all))->fingerprint();
  };
  for (const char* field :
       {"embedding_multiplier", "attention_multiplier", "residual_multiplier", "logits_scaling"}) {
    EXPECT_NE(fingerprint("GraniteForCausalLM", ",\"" + std::string(field) + "\":0.5"),
              fingerprint("GraniteForCausalLM", ""))
        << field;
  }
  EXPECT_NE(fingerprint("SmolLM3ForCausalLM", R"(,"no_rope_layers":[1,0,1])"),
            fingerprint("SmolLM3ForCausalLM", ""));
  EXPECT_NE(fingerprint("Phi3ForCausalLM", R"(,"partial_rotary_factor":0.5)"),
            fingerprint("Phi3ForCausalLM", ""));
  const auto differs = [&](const std::string& architecture, const std::string& base,
                           const std::string& field) {
    return fingerprint(architecture, base + field) != fingerprint(architecture, base);
  };
  const std::string window = R"(,"sliding_window":16)";
  EXPECT_TRUE(differs("MistralForCausalLM", "", window));
  EXPECT_TRUE(differs("Qwen2ForCausalLM", window + R"(,"use_sliding_window":true)",
                      R"(,"max_window_layers":1)"));
  for (const char* field :
       {"attn_logit_softcapping", "final_logit_softcapping", "query_pre_attn_scalar"}) {
    EXPECT_TRUE(differs("Gemma2ForCausalLM", window, ",\"" + std::string(field) + "\":7")) << field;
  }
  EXPECT_TRUE(differs("Gemma3ForCausalLM", window, R"(,"rope_local_base_freq":500)"));
  EXPECT_TRUE(differs("Gemma3ForCausalLM", window, R"(,"sliding_window_pattern":2)"));
  const std::string experts =
      R"(,"num_experts":8,"num_experts_per_tok":2,"moe_intermediate_size":32)";
  for (const char* field :
       {R"(,"norm_topk_prob":true)", R"(,"decoder_sparse_step":2)", R"(,"mlp_only_layers":[1])"}) {
    EXPECT_TRUE(differs("Qwen3MoeForCausalLM", experts, field)) << field;
  }
}

TEST(Llama, DescribesItsFrequenciesAndShapes) {
  ModelConfig config = *load_config(config_with("\"head_dim\": 8,\"num_key_value_heads\": 2"));
  const Architecture* architecture = find_architecture(config.architecture);
  ASSERT_NE(architecture, nullptr);
  const ModelDescription model = architecture->describe(config);
  ASSERT_EQ(model.layers.size(), 3U);
  ASSERT_EQ(model.ropes.size(), 1U);
  ASSERT_EQ(model.ropes[0].inv_freq.size(), 4U);
  const double expected[] = {1.0, 0.1, 0.01, 0.001};  // 10000^(-j/4)
  for (size_t j = 0; j < 4; ++j) EXPECT_NEAR(model.ropes[0].inv_freq[j], expected[j], 1e-15);
  EXPECT_EQ(model.layers[2].q.tensor.name, "model.layers.2.self_attn.q_proj.weight");
  EXPECT_THAT(model.layers[2].q.tensor.shape, ElementsAre(32, 64));
  EXPECT_THAT(model.layers[2].v.tensor.shape, ElementsAre(16, 64));
  EXPECT_THAT(model.layers[2].o.tensor.shape, ElementsAre(64, 32));
  EXPECT_FLOAT_EQ(model.layers[2].scale, 1.0F / std::sqrt(8.0F));
}

}  // namespace
}  // namespace anyslot
