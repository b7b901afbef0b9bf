#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backend/ops.h"
#include "backend/rope.h"
#include "model/model_config.h"

namespace anyslot {

class ConfigReader;

/// A tensor of the checkpoint: its name and the shape it must have.
struct WeightRef {
  std::string name;
  std::vector<int64_t> shape;
};

/// The weight of a linear layer: consecutive rows of a tensor of the checkpoint, mostly all.
struct LinearRef {
  WeightRef tensor;  // [rows, in_features]
  int64_t first_row = 0;
  int64_t num_rows = 0;  // out_features
  std::string bias;      // the tensor [num_rows] that is added; empty: none
};

/// down(activation(gate x) * up x).
struct MlpDescription {
  LinearRef gate;  // [intermediate, hidden]
  LinearRef up;    // [intermediate, hidden]
  LinearRef down;  // [hidden, intermediate]
};

/// A sum of the MLPs of some experts. A token's are the per_token ones whose logits are largest;
/// their shares are the softmax of all logits or, normalized, of theirs.
struct ExpertsDescription {
  LinearRef router;                     // [num_experts, hidden]
  std::vector<MlpDescription> experts;  // all of one width
  int per_token = 0;
  bool normalized = false;
};

/// One decoder layer: what it computes, and where its weights are. `hidden` is the model's width. A
/// norm that is not given is left out.
struct LayerDescription {
  int num_heads = 0;
  int num_kv_heads = 0;
  int head_dim = 0;
  float scale = 1.0F;      // of the scores
  float score_cap = 0.0F;  // see AttentionSpec
  int64_t window = 0;      // 0: none
  int rope = 0;            // index into ModelDescription::ropes
  /// Of what attention and MLP add to the residual stream.
  float residual_multiplier = 1.0F;

  std::optional<WeightRef> attention_norm;  // [hidden], of what enters
  LinearRef q;                              // [num_heads * head_dim, hidden]
  LinearRef k;                              // [num_kv_heads * head_dim, hidden]
  LinearRef v;                              // [num_kv_heads * head_dim, hidden]
  /// [head_dim]: of each head; or as wide as Q and K: of all heads together. Before the turn.
  std::optional<WeightRef> q_norm;
  std::optional<WeightRef> k_norm;
  LinearRef o;                                   // [hidden, num_heads * head_dim]
  std::optional<WeightRef> attention_post_norm;  // [hidden], of what leaves
  std::optional<WeightRef> mlp_norm;             // [hidden]
  Activation activation = Activation::kSilu;
  MlpDescription mlp;
  /// Instead of mlp. Such a layer has no mlp_post_norm, and residual_multiplier is 1.
  std::optional<ExpertsDescription> experts;
  std::optional<WeightRef> mlp_post_norm;  // [hidden]
};

/// A whole model. All layers have the same num_kv_heads and head_dim, as one KV pool serves them.
struct ModelDescription {
  std::vector<RopeParameters> ropes;
  float norm_offset = 0.0F;  // what is added to the weights of norms
  WeightRef embedding;       // [vocab, hidden]
  float embedding_multiplier = 1.0F;
  bool rounds_embedding_multiplier = false;  // to the type of activations, as its authors do
  std::vector<LayerDescription> layers;      // at least one
  WeightRef final_norm;                      // [hidden]
  std::optional<WeightRef> lm_head;          // [vocab, hidden]; nullopt: the embedding, tied
  float logits_multiplier = 1.0F;
  float logit_cap = 0.0F;  // logits are cap * tanh(logit / cap); 0: as they are
};

/// The KV pool of such a model.
KvShape kv_shape_of(const ModelConfig& config, DType dtype, int64_t num_blocks);

/// A family of models: how its config.json is read and how that becomes layers. One file in
/// families/ and one row of the table in architecture.cc per family.
struct Architecture {
  std::string_view name;  // as config.json's architectures has it
  /// Fills in all but the architecture's name and eos_token_ids; failures stay in the reader.
  /// max_model_len is what the user asked for, or 0, on entry.
  void (*read_config)(const ConfigReader& reader, ModelConfig& config);
  ModelDescription (*describe)(const ModelConfig& config);
};

/// nullptr when the table has no such row.
const Architecture* find_architecture(std::string_view name);
/// Why there is no such row, in words that end a sentence about the architecture.
std::string why_unsupported(std::string_view name);

}  // namespace anyslot
