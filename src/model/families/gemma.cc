// Gemma2ForCausalLM and Gemma3ForCausalLM: norms before and behind each half of a layer, whose
// weights count from 1; GELU; embeddings times the root of their width; some layers with a window.
// Gemma 2 caps scores and logits. Gemma 3 normalizes heads, and its local layers have a RoPE of
// their own.

#include <cmath>
#include <string>

#include "model/families/common.h"
#include "model/families/families.h"

namespace anyslot {

namespace {

constexpr double kMost = 1e6;

FamilyTraits gemma_traits(double default_theta) {
  return {.tied_by_default = true,
          .default_theta = default_theta,
          .has_windows = true,
          .activation_key = "hidden_activation",
          .activation = "gelu_pytorch_tanh"};
}

void read_gemma(const ConfigReader& reader, const FamilyTraits& traits, LocalRule is_local,
                ModelConfig& config) {
  read_common_config(reader, traits, config);
  read_biases(reader, false, config);
  if (!reader.has("sliding_window")) reader.fail("sliding_window", "is missing");
  read_window(reader, is_local, config);
  if (reader.boolean("use_bidirectional_attention", false)) {
    reader.fail("use_bidirectional_attention", "is true, which is not supported");
  }
  config.multipliers.embedding = std::sqrt(static_cast<double>(config.hidden_size));
  config.multipliers.scores = 1 / std::sqrt(reader.number("query_pre_attn_scalar", 0, kMost, 256));
}

/// A cap that is null is none; one that is not given is its family's.
double read_cap(const ConfigReader& reader, std::string_view key, double by_default) {
  return reader.is_null(key) ? 0.0 : reader.number(key, 0.0, kMost, by_default);
}

ModelDescription describe_gemma(const ModelConfig& config) {
  const int64_t hidden = config.hidden_size;
  ModelDescription model = describe_common(config);
  model.norm_offset = 1.0F;
  model.embedding_multiplier = static_cast<float>(config.multipliers.embedding);
  model.rounds_embedding_multiplier = true;
  model.logit_cap = static_cast<float>(config.logit_cap);
  for (int i = 0; i < config.num_layers; ++i) {
    const std::string prefix = layer_prefix(i);
    LayerDescription& layer = model.layers[static_cast<size_t>(i)];
    layer.scale = static_cast<float>(config.multipliers.scores);
    layer.score_cap = static_cast<float>(config.score_cap);
    layer.activation = Activation::kGeluTanh;
    layer.attention_post_norm = {prefix + "post_attention_layernorm.weight", {hidden}};
    layer.mlp_norm = {prefix + "pre_feedforward_layernorm.weight", {hidden}};
    layer.mlp_post_norm = {prefix + "post_feedforward_layernorm.weight", {hidden}};
  }
  return model;
}

/// Newer files have an object with a RoPE for each kind of layers. In older ones rope_scaling is of
/// the layers that see everything; so is what read_common_config has read.
void read_local_rope(const ConfigReader& reader, const FamilyTraits& traits, ModelConfig& config) {
  RopeContext context = rope_context(traits, config);
  context.default_theta = 10000.0;
  const auto kinds = reader.object("rope_parameters");
  const auto parameters = kinds ? kinds->object("sliding_attention") : std::nullopt;
  config.local_rope = parameters ? read_rope_object(*parameters, context)
                                 : read_plain_rope(reader, "rope_local_base_freq", context);
}

}  // namespace

void read_gemma2_config(const ConfigReader& reader, ModelConfig& config) {
  const auto is_local = [](int layer) { return layer % 2 == 0; };
  read_gemma(reader, gemma_traits(10000.0), is_local, config);
  config.score_cap = read_cap(reader, "attn_logit_softcapping", 50.0);
  config.logit_cap = read_cap(reader, "final_logit_softcapping", 30.0);
}

ModelDescription describe_gemma2(const ModelConfig& config) { return describe_gemma(config); }

void read_gemma3_config(const ConfigReader& reader, ModelConfig& config) {
  FamilyTraits traits = gemma_traits(1e6);
  traits.rope_kind = "full_attention";
  const int64_t pattern =
      reader.integer("sliding_window_pattern", 1, kMaxPositions,
                     reader.integer("_sliding_window_pattern", 1, kMaxPositions, 6));
  const auto is_local = [pattern](int layer) { return (layer + 1) % pattern != 0; };
  read_gemma(reader, traits, is_local, config);
  read_local_rope(reader, traits, config);
  if (reader.has("attn_logit_softcapping")) {
    reader.fail("attn_logit_softcapping", "is set, which is not supported for this architecture");
  }
  config.logit_cap = read_cap(reader, "final_logit_softcapping", 0.0);
}

ModelDescription describe_gemma3(const ModelConfig& config) {
  ModelDescription model = describe_gemma(config);
  model.ropes.push_back(describe_rope(*config.local_rope));
  for (int i = 0; i < config.num_layers; ++i) {
    LayerDescription& layer = model.layers[static_cast<size_t>(i)];
    layer.q_norm = {layer_prefix(i) + "self_attn.q_norm.weight", {config.head_dim}};
    layer.k_norm = {layer_prefix(i) + "self_attn.k_norm.weight", {config.head_dim}};
    if (config.is_local(i)) layer.rope = 1;
  }
  return model;
}

}  // namespace anyslot
