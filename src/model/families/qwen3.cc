// Qwen3ForCausalLM: each head of Q and K is normalized before it is turned.

#include "model/families/common.h"
#include "model/families/families.h"

namespace anyslot {

void read_qwen3_config(const ConfigReader& reader, ModelConfig& config) {
  read_common_config(reader, {.has_windows = true}, config);
  read_biases(reader, false, config);
  read_qwen_window(reader, config);
}

ModelDescription describe_qwen3(const ModelConfig& config) {
  ModelDescription model = describe_common(config);
  for (int i = 0; i < config.num_layers; ++i) {
    LayerDescription& layer = model.layers[static_cast<size_t>(i)];
    layer.q_norm = {layer_prefix(i) + "self_attn.q_norm.weight", {config.head_dim}};
    layer.k_norm = {layer_prefix(i) + "self_attn.k_norm.weight", {config.head_dim}};
  }
  return model;
}

}  // namespace anyslot
