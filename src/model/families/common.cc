#include "model/families/common.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace anyslot {

namespace {

constexpr int64_t kMaxVocab = int64_t{1} << 24;
constexpr int64_t kMaxLayers = 1024;
constexpr int64_t kMaxHeads = 1024;
constexpr int64_t kMaxHeadDim = 1024;

void read_shape(const ConfigReader& reader, ModelConfig& config) {
  config.vocab_size = reader.integer("vocab_size", 1, kMaxVocab);
  config.hidden_size = reader.integer("hidden_size", 1, kMaxWidth);
  config.intermediate_size = reader.integer("intermediate_size", 1, kMaxWidth);
  config.num_layers = static_cast<int>(reader.integer("num_hidden_layers", 1, kMaxLayers));
  const int64_t num_heads = reader.integer("num_attention_heads", 1, kMaxHeads);
  const int64_t num_kv_heads = reader.integer("num_key_value_heads", 1, kMaxHeads, num_heads);
  if (num_heads % num_kv_heads != 0) {
    reader.fail("num_key_value_heads", "is " + std::to_string(num_kv_heads) +
                                           "; num_attention_heads (" + std::to_string(num_heads) +
                                           ") must be a multiple of it");
  }
  if (!reader.has("head_dim") && config.hidden_size % num_heads != 0) {
    reader.fail("head_dim", "is missing and hidden_size (" + std::to_string(config.hidden_size) +
                                ") is no multiple of num_attention_heads (" +
                                std::to_string(num_heads) + ")");
  }
  const int64_t head_dim = reader.has("head_dim") ? reader.integer("head_dim", 2, kMaxHeadDim)
                                                  : config.hidden_size / num_heads;
  if (head_dim % 2 != 0 || head_dim < 2 || head_dim > kMaxHeadDim) {
    reader.fail("head_dim", "is " + std::to_string(head_dim) + "; it must be even, from 2 to " +
                                std::to_string(kMaxHeadDim));
  }
  config.num_heads = static_cast<int>(num_heads);
  config.num_kv_heads = static_cast<int>(num_kv_heads);
  config.head_dim = static_cast<int>(head_dim);
}

/// Kinds of layers that newer files list.
void read_layer_types(const ConfigReader& reader, bool has_windows, ModelConfig& config) {
  const std::vector<std::string> types = reader.texts("layer_types");
  for (const std::string& type : types) {
    const bool is_local = type == "sliding_attention";
    if ((!is_local || !has_windows) && type != "full_attention") {
      reader.fail("layer_types", "holds \"" + type + "\", which is not supported");
    }
    config.local_layers.push_back(is_local);
  }
  if (reader.has("layer_types") && static_cast<int>(types.size()) != config.num_layers) {
    reader.fail("layer_types", "has " + std::to_string(types.size()) + " names for " +
                                   std::to_string(config.num_layers) + " layers");
    config.local_layers.clear();
  }
}

bool has_local_layers(const ModelConfig& config) {
  return std::ranges::find(config.local_layers, true) != config.local_layers.end();
}

LayerDescription describe_layer(const ModelConfig& config, int index) {
  const int64_t hidden = config.hidden_size;
  const int64_t q_width = int64_t{config.num_heads} * config.head_dim;
  const int64_t kv_width = int64_t{config.num_kv_heads} * config.head_dim;
  const std::string prefix = layer_prefix(index);
  LayerDescription layer;
  layer.num_heads = config.num_heads;
  layer.num_kv_heads = config.num_kv_heads;
  layer.head_dim = config.head_dim;
  layer.scale = 1.0F / std::sqrt(static_cast<float>(config.head_dim));
  layer.window = config.window_of(index);
  layer.attention_norm = {prefix + "input_layernorm.weight", {hidden}};
  layer.q = whole(prefix + "self_attn.q_proj.weight", q_width, hidden);
  layer.k = whole(prefix + "self_attn.k_proj.weight", kv_width, hidden);
  layer.v = whole(prefix + "self_attn.v_proj.weight", kv_width, hidden);
  layer.o = whole(prefix + "self_attn.o_proj.weight", hidden, q_width);
  layer.mlp_norm = {prefix + "post_attention_layernorm.weight", {hidden}};
  layer.mlp.gate = whole(prefix + "mlp.gate_proj.weight", config.intermediate_size, hidden);
  layer.mlp.up = whole(prefix + "mlp.up_proj.weight", config.intermediate_size, hidden);
  layer.mlp.down = whole(prefix + "mlp.down_proj.weight", hidden, config.intermediate_size);
  if (config.attention_bias) {
    for (LinearRef* weight : {&layer.q, &layer.k, &layer.v, &layer.o}) add_bias(*weight);
  }
  if (config.mlp_bias) {
    for (LinearRef* weight : {&layer.mlp.gate, &layer.mlp.up, &layer.mlp.down}) add_bias(*weight);
  }
  return layer;
}

}  // namespace

void read_common_config(const ConfigReader& reader, const FamilyTraits& traits,
                        ModelConfig& config) {
  read_shape(reader, config);
  config.max_position_embeddings = reader.integer("max_position_embeddings", 1, kMaxPositions);
  if (config.max_model_len == 0) config.max_model_len = config.max_position_embeddings;
  config.rope = read_rope(reader, rope_context(traits, config));
  config.rms_norm_eps = static_cast<float>(reader.number("rms_norm_eps", 0.0, 1.0));
  config.tie_word_embeddings = reader.boolean("tie_word_embeddings", traits.tied_by_default);
  reader.one_of(traits.activation_key, std::span(&traits.activation, 1), traits.activation);
  read_layer_types(reader, traits.has_windows, config);
  if (reader.has("quantization_config")) {
    reader.fail("quantization_config", "is set; quantized weights are not supported");
  }
}

void read_biases(const ConfigReader& reader, bool has_mlp_bias, ModelConfig& config) {
  config.attention_bias = reader.boolean("attention_bias", false);
  if (has_mlp_bias) config.mlp_bias = reader.boolean("mlp_bias", false);
}

void read_window(const ConfigReader& reader, LocalRule rule, ModelConfig& config) {
  const bool listed = reader.has("layer_types");
  if (!reader.has("sliding_window")) {
    if (listed && has_local_layers(config)) {
      reader.fail("layer_types",
                  "holds \"sliding_attention\", but sliding_window, its length, is missing");
    }
    return;
  }
  for (int i = 0; !listed && i < config.num_layers; ++i) config.local_layers.push_back(rule(i));
  const int64_t window = reader.integer("sliding_window", 1, kMaxPositions);
  if (has_local_layers(config) && window < config.max_model_len) config.window = window;
}

void read_optional_window(const ConfigReader& reader, LocalRule rule, ModelConfig& config) {
  if (reader.boolean("use_sliding_window", false)) {
    read_window(reader, rule, config);
  } else if (has_local_layers(config)) {
    reader.fail("layer_types", "holds \"sliding_attention\", but use_sliding_window is not true");
  }
}

void read_qwen_window(const ConfigReader& reader, ModelConfig& config) {
  const int64_t first = reader.integer("max_window_layers", 0, kMaxLayers, 28);
  read_optional_window(
      reader, [first](int layer) { return layer >= first; }, config);
}

RopeContext rope_context(const FamilyTraits& traits, const ModelConfig& config) {
  return {.head_dim = config.head_dim,
          .rotary = traits.rotary,
          .max_position_embeddings = config.max_position_embeddings,
          .max_model_len = config.max_model_len,
          .default_theta = traits.default_theta,
          .layer_kind = traits.rope_kind};
}

ModelDescription describe_common(const ModelConfig& config) {
  ModelDescription model;
  model.ropes = {describe_rope(config.rope)};
  model.embedding = {"model.embed_tokens.weight", {config.vocab_size, config.hidden_size}};
  model.final_norm = {"model.norm.weight", {config.hidden_size}};
  if (!config.tie_word_embeddings) {
    model.lm_head = {"lm_head.weight", {config.vocab_size, config.hidden_size}};
  }
  for (int i = 0; i < config.num_layers; ++i) model.layers.push_back(describe_layer(config, i));
  return model;
}

std::string layer_prefix(int layer) { return "model.layers." + std::to_string(layer) + "."; }

LinearRef whole(std::string name, int64_t out_features, int64_t in_features) {
  return {{std::move(name), {out_features, in_features}}, 0, out_features, ""};
}

LinearRef rows_of(const WeightRef& tensor, int64_t first_row, int64_t num_rows) {
  return {tensor, first_row, num_rows, ""};
}

void add_bias(LinearRef& weight) {
  constexpr std::string_view kWeight = "weight";
  const std::string& name = weight.tensor.name;
  weight.bias = name.substr(0, name.size() - kWeight.size()) + "bias";
}

}  // namespace anyslot
