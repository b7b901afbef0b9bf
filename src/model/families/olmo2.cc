// Olmo2ForCausalLM: norms stand behind attention and MLP, and Q and K are normalized over all
// their heads together.

#include "model/families/common.h"
#include "model/families/families.h"

namespace anyslot {

void read_olmo2_config(const ConfigReader& reader, ModelConfig& config) {
  read_common_config(reader, {}, config);
  read_biases(reader, false, config);
}

ModelDescription describe_olmo2(const ModelConfig& config) {
  const int64_t hidden = config.hidden_size;
  ModelDescription model = describe_common(config);
  for (int i = 0; i < config.num_layers; ++i) {
    const std::string prefix = layer_prefix(i);
    LayerDescription& layer = model.layers[static_cast<size_t>(i)];
    layer.attention_norm.reset();
    layer.mlp_norm.reset();
    layer.q_norm = {prefix + "self_attn.q_norm.weight", {layer.q.num_rows}};
    layer.k_norm = {prefix + "self_attn.k_norm.weight", {layer.k.num_rows}};
    layer.attention_post_norm = {prefix + "post_attention_layernorm.weight", {hidden}};
    layer.mlp_post_norm = {prefix + "post_feedforward_layernorm.weight", {hidden}};
  }
  return model;
}

}  // namespace anyslot
