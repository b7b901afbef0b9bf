// Phi3ForCausalLM, Phi 3.5 and Phi 4 (mini) too: Llama's form with Q, K and V in one tensor, gate
// and up in another, and heads that may be turned in part.

#include "model/families/common.h"
#include "model/families/families.h"

namespace anyslot {

void read_phi3_config(const ConfigReader& reader, ModelConfig& config) {
  read_common_config(reader, {.rotary = RotaryPart::kAnyShare, .has_windows = true}, config);
  read_window(reader, kEveryLayer, config);
}

ModelDescription describe_phi3(const ModelConfig& config) {
  const int64_t hidden = config.hidden_size;
  const int64_t intermediate = config.intermediate_size;
  ModelDescription model = describe_common(config);
  for (int i = 0; i < config.num_layers; ++i) {
    const std::string prefix = layer_prefix(i);
    LayerDescription& layer = model.layers[static_cast<size_t>(i)];
    const int64_t q_width = layer.q.num_rows;
    const int64_t kv_width = layer.k.num_rows;
    const WeightRef qkv{prefix + "self_attn.qkv_proj.weight", {q_width + 2 * kv_width, hidden}};
    layer.q = rows_of(qkv, 0, q_width);
    layer.k = rows_of(qkv, q_width, kv_width);
    layer.v = rows_of(qkv, q_width + kv_width, kv_width);
    const WeightRef gate_up{prefix + "mlp.gate_up_proj.weight", {2 * intermediate, hidden}};
    layer.mlp.gate = rows_of(gate_up, 0, intermediate);
    layer.mlp.up = rows_of(gate_up, intermediate, intermediate);
  }
  return model;
}

}  // namespace anyslot
