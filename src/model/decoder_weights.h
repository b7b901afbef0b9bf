#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "anyslot/status.h"
#include "backend/ops.h"
#include "model/architecture.h"
#include "model/weight_source.h"

namespace anyslot {

/// A linear layer in the backend's form.
struct Projection {
  std::unique_ptr<LinearWeight> weight;
  std::vector<float> bias;  // [out_features]; empty: none
};

/// One expert in the backend's form.
struct ExpertWeights {
  Projection gate_up;  // gate and up stacked
  Projection down;
};

/// One layer in the backend's form. The last layer multiplies Q for fewer rows than K and V, so its
/// projections are apart. A norm that the layer does not have is empty.
struct DecoderLayer {
  AttentionSpec attention;
  std::vector<float> attention_norm;  // [hidden]
  Projection qkv;                     // Q, K and V stacked; all but the last layer
  Projection q;                       // the last layer
  Projection kv;                      // the last layer: K and V stacked
  std::vector<float> q_norm;          // [head_dim] or [num_heads * head_dim]
  std::vector<float> k_norm;          // [head_dim] or [num_kv_heads * head_dim]
  Projection o;
  std::vector<float> attention_post_norm;  // [hidden]
  std::vector<float> mlp_norm;             // [hidden]
  Activation activation = Activation::kSilu;
  Projection gate_up;  // gate and up stacked; unless there are experts
  Projection down;
  Projection router;
  std::vector<ExpertWeights> experts;  // empty: none
  ExpertChoice expert_choice;
  std::vector<float> mlp_post_norm;  // [hidden]
  float residual_multiplier = 1.0F;

  /// Whether what attention and MLP give can be added to the residual stream as it is.
  bool adds_directly() const {
    return attention_post_norm.empty() && mlp_post_norm.empty() && residual_multiplier == 1.0F;
  }
};

/// The weights of a decoder.
struct DecoderWeights {
  std::vector<std::unique_ptr<RopeTable>> ropes;
  LoadedTensor embedding;  // [vocab, hidden]
  float embedding_multiplier = 1.0F;
  std::vector<DecoderLayer> layers;
  std::vector<float> final_norm;  // [hidden], times what logits are multiplied by
  std::unique_ptr<LinearWeight> lm_head;
  float logit_cap = 0.0F;      // 0: none
  int64_t num_parameters = 0;  // tied embeddings count once
};

/// Hands the described tensors to the backend. The source must outlive the result, whose embedding
/// may lie in it. Fails with the source's or the backend's message.
Expected<DecoderWeights> load_decoder_weights(const ModelDescription& description,
                                              WeightSource& source, Backend& backend);

}  // namespace anyslot
