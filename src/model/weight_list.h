#pragma once

#include <cstdint>
#include <vector>

#include "backend/ops.h"
#include "base/dtype.h"
#include "model/architecture.h"

namespace anyslot {

/// What becomes of a weight: it is looked up in, kept as a list of float32 (norms and biases), or
/// multiplied with.
enum class WeightKind : uint8_t { kEmbedding, kVector, kLinear };

/// A tensor of the checkpoint that becomes a weight, or consecutive rows of one.
struct WeightPart {
  WeightKind kind = WeightKind::kLinear;
  WeightRef tensor;
  int64_t num_rows = 0;  // of kLinear, the part's own; else 1

  int64_t num_elements() const;
};

/// All that a model's weights are made of, layer after layer.
std::vector<WeightPart> weight_parts(const ModelDescription& model);

/// How many numbers the weights have, by what becomes of them.
struct WeightSizes {
  int64_t num_parameters = 0;  // tied embeddings count once
  int64_t embedding = 0;       // elements of the table
  int64_t linear = 0;          // elements of linear layers; the embedding, where it is tied, too
  int64_t channels = 0;        // rows of linear layers
  int64_t vectors = 0;         // elements of norms and biases
};

WeightSizes weight_sizes(const ModelDescription& model);

/// The memory that they take in a backend of activations of `dtype`, in bytes, without what it pads
/// them with. `embedding`: of the table, which stays as the checkpoint has it.
int64_t weight_bytes(const WeightSizes& sizes, DType embedding, DType dtype, bool int8_weights);

/// What a backend must be able to do.
ModelNeeds needs_of(const ModelDescription& model);

}  // namespace anyslot
