#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backend/rope.h"
#include "model/model_config.h"

namespace anyslot {

class ConfigReader;

/// A tensor of the checkpoint: its name and the shape it must have.
struct WeightRef {
  std::string name;
  std::vector<int64_t> shape;
};

/// One decoder layer: what its attention is, and where its weights are. `hidden` is the model's
/// width.
struct LayerDescription {
  int num_heads = 0;
  int num_kv_heads = 0;
  int head_dim = 0;
  float scale = 1.0F;  // of the scores
  int64_t window = 0;  // 0: none
  int rope = 0;        // index into ModelDescription::ropes

  WeightRef attention_norm;  // [hidden]
  WeightRef q;               // [num_heads * head_dim, hidden]
  WeightRef k;               // [num_kv_heads * head_dim, hidden]
  WeightRef v;               // [num_kv_heads * head_dim, hidden]
  WeightRef o;               // [hidden, num_heads * head_dim]
  WeightRef mlp_norm;        // [hidden]
  WeightRef gate;            // [intermediate, hidden]
  WeightRef up;              // [intermediate, hidden]
  WeightRef down;            // [hidden, intermediate]
};

/// A whole model. All layers have the same num_kv_heads and head_dim, as one KV pool serves them.
struct ModelDescription {
  std::vector<RopeParameters> ropes;
  WeightRef embedding;                   // [vocab, hidden]
  std::vector<LayerDescription> layers;  // at least one
  WeightRef final_norm;                  // [hidden]
  std::optional<WeightRef> lm_head;      // [vocab, hidden]; nullopt: the embedding, tied
};

/// A family of models: how its config.json is read and how that becomes layers. One file and one
/// row of the table in architecture.cc per family.
struct Architecture {
  std::string_view name;  // as config.json's architectures has it
  /// Fills in all but the architecture's name and eos_token_ids; failures stay in the reader.
  void (*read_config)(const ConfigReader& reader, ModelConfig& config);
  ModelDescription (*describe)(const ModelConfig& config);
};

/// nullptr when the table has no such row.
const Architecture* find_architecture(std::string_view name);
/// The names of all rows, for messages.
std::string supported_architectures();

void read_llama_config(const ConfigReader& reader, ModelConfig& config);
ModelDescription describe_llama(const ModelConfig& config);

}  // namespace anyslot
