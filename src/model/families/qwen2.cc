// Qwen2ForCausalLM, Qwen 2.5 too: Llama's form with biases of Q, K and V.

#include "model/families/common.h"
#include "model/families/families.h"

namespace anyslot {

void read_qwen2_config(const ConfigReader& reader, ModelConfig& config) {
  read_common_config(reader, {.has_windows = true}, config);
  read_qwen_window(reader, config);
}

ModelDescription describe_qwen2(const ModelConfig& config) {
  ModelDescription model = describe_common(config);
  for (LayerDescription& layer : model.layers) {
    for (LinearRef* weight : {&layer.q, &layer.k, &layer.v}) add_bias(*weight);
  }
  return model;
}

}  // namespace anyslot
