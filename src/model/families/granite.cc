// GraniteForCausalLM: Llama's form with multipliers of embedding, scores, residual and logits.

#include "model/families/common.h"
#include "model/families/families.h"

namespace anyslot {

void read_granite_config(const ConfigReader& reader, ModelConfig& config) {
  constexpr double kMost = 1e6;
  read_common_config(reader, {}, config);
  read_biases(reader, true, config);
  Multipliers& multipliers = config.multipliers;
  multipliers.embedding = reader.number("embedding_multiplier", 0.0, kMost, 1.0);
  multipliers.scores = reader.number("attention_multiplier", 0.0, kMost, 1.0);
  multipliers.residual = reader.number("residual_multiplier", 0.0, kMost, 1.0);
  multipliers.logits = 1.0 / reader.number("logits_scaling", 0.0, kMost, 1.0);
}

ModelDescription describe_granite(const ModelConfig& config) {
  const Multipliers& multipliers = config.multipliers;
  ModelDescription model = describe_common(config);
  model.embedding_multiplier = static_cast<float>(multipliers.embedding);
  model.logits_multiplier = static_cast<float>(multipliers.logits);
  for (LayerDescription& layer : model.layers) {
    layer.scale = static_cast<float>(multipliers.scores);
    layer.residual_multiplier = static_cast<float>(multipliers.residual);
  }
  return model;
}

}  // namespace anyslot
