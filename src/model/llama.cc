// LlamaForCausalLM: grouped-query attention, RMSNorm before each half of a layer, SwiGLU.

#include <cmath>

#include "model/architecture.h"
#include "model/config_reader.h"
#include "model/rope_config.h"

namespace anyslot {

namespace {

constexpr int64_t kMaxVocab = int64_t{1} << 24;
constexpr int64_t kMaxWidth = int64_t{1} << 20;
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

}  // namespace

void read_llama_config(const ConfigReader& reader, ModelConfig& config) {
  static constexpr std::string_view kActivations[] = {"silu"};
  read_shape(reader, config);
  config.max_position_embeddings = reader.integer("max_position_embeddings", 1, kMaxPositions);
  config.rope = read_rope(reader, config.max_position_embeddings);
  config.rms_norm_eps = static_cast<float>(reader.number("rms_norm_eps", 0.0, 1.0));
  config.tie_word_embeddings = reader.boolean("tie_word_embeddings", false);
  reader.one_of("hidden_act", kActivations, "silu");
  reader.require_false("attention_bias");
  reader.require_false("mlp_bias");
  if (reader.has("quantization_config")) {
    reader.fail("quantization_config", "is set; quantized weights are not supported");
  }
}

ModelDescription describe_llama(const ModelConfig& config) {
  const int64_t hidden = config.hidden_size;
  const int64_t intermediate = config.intermediate_size;
  const int64_t q_width = int64_t{config.num_heads} * config.head_dim;
  const int64_t kv_width = int64_t{config.num_kv_heads} * config.head_dim;

  ModelDescription model;
  model.ropes = {describe_rope(config.rope, config.head_dim)};
  model.embedding = {"model.embed_tokens.weight", {config.vocab_size, hidden}};
  model.final_norm = {"model.norm.weight", {hidden}};
  if (!config.tie_word_embeddings) model.lm_head = {"lm_head.weight", {config.vocab_size, hidden}};
  for (int i = 0; i < config.num_layers; ++i) {
    const std::string prefix = "model.layers." + std::to_string(i) + ".";
    LayerDescription layer;
    layer.num_heads = config.num_heads;
    layer.num_kv_heads = config.num_kv_heads;
    layer.head_dim = config.head_dim;
    layer.scale = 1.0F / std::sqrt(static_cast<float>(config.head_dim));
    layer.attention_norm = {prefix + "input_layernorm.weight", {hidden}};
    layer.q = {prefix + "self_attn.q_proj.weight", {q_width, hidden}};
    layer.k = {prefix + "self_attn.k_proj.weight", {kv_width, hidden}};
    layer.v = {prefix + "self_attn.v_proj.weight", {kv_width, hidden}};
    layer.o = {prefix + "self_attn.o_proj.weight", {hidden, q_width}};
    layer.mlp_norm = {prefix + "post_attention_layernorm.weight", {hidden}};
    layer.gate = {prefix + "mlp.gate_proj.weight", {intermediate, hidden}};
    layer.up = {prefix + "mlp.up_proj.weight", {intermediate, hidden}};
    layer.down = {prefix + "mlp.down_proj.weight", {hidden, intermediate}};
    model.layers.push_back(std::move(layer));
  }
  return model;
}

}  // namespace anyslot
