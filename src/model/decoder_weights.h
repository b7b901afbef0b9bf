#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "anyslot/status.h"
#include "backend/ops.h"
#include "model/architecture.h"
#include "model/weight_source.h"

namespace anyslot {

/// One layer in the backend's form. The last layer multiplies Q for fewer rows than K and V, so its
/// projections are apart.
struct DecoderLayer {
  AttentionSpec attention;
  std::vector<float> attention_norm;  // [hidden]
  std::unique_ptr<LinearWeight> qkv;  // Q, K and V stacked; all but the last layer
  std::unique_ptr<LinearWeight> q;    // the last layer
  std::unique_ptr<LinearWeight> kv;   // the last layer: K and V stacked
  std::unique_ptr<LinearWeight> o;
  std::vector<float> mlp_norm;            // [hidden]
  std::unique_ptr<LinearWeight> gate_up;  // gate and up stacked
  std::unique_ptr<LinearWeight> down;
};

/// The weights of a decoder.
struct DecoderWeights {
  std::vector<std::unique_ptr<RopeTable>> ropes;
  LoadedTensor embedding;  // [vocab, hidden]
  std::vector<DecoderLayer> layers;
  std::vector<float> final_norm;  // [hidden]
  std::unique_ptr<LinearWeight> lm_head;
  int64_t num_parameters = 0;  // tied embeddings count once
};

/// Hands the described tensors to the backend. The source must outlive the result, whose embedding
/// may lie in it. Fails with the source's or the backend's message.
Expected<DecoderWeights> load_decoder_weights(const ModelDescription& description,
                                              WeightSource& source, Backend& backend);

}  // namespace anyslot
