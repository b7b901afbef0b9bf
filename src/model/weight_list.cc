#include "model/weight_list.h"

#include <initializer_list>
#include <optional>
#include <utility>

namespace anyslot {

namespace {

class PartList {
 public:
  void add(WeightKind kind, const WeightRef& tensor) { parts_.push_back({kind, tensor, 1}); }

  void add_norm(const std::optional<WeightRef>& norm) {
    if (norm) add(WeightKind::kVector, *norm);
  }

  void add_linear(const LinearRef& linear) {
    parts_.push_back({WeightKind::kLinear, linear.tensor, linear.num_rows});
  }

  /// Of one product: their biases come behind them.
  void add_stacked(std::initializer_list<const LinearRef*> linears) {
    for (const LinearRef* linear : linears) add_linear(*linear);
    for (const LinearRef* linear : linears) {
      if (!linear->bias.empty()) add(WeightKind::kVector, {linear->bias, {linear->num_rows}});
    }
  }

  void add_mlp(const MlpDescription& mlp) {
    add_stacked({&mlp.gate, &mlp.up});
    add_stacked({&mlp.down});
  }

  void add_layer(const LayerDescription& layer) {
    add_norm(layer.attention_norm);
    add_stacked({&layer.q, &layer.k, &layer.v});
    add_norm(layer.q_norm);
    add_norm(layer.k_norm);
    add_stacked({&layer.o});
    add_norm(layer.attention_post_norm);
    add_norm(layer.mlp_norm);
    if (layer.experts) {
      add_stacked({&layer.experts->router});
      for (const MlpDescription& expert : layer.experts->experts) add_mlp(expert);
    } else {
      add_mlp(layer.mlp);
    }
    add_norm(layer.mlp_post_norm);
  }

  std::vector<WeightPart> take() { return std::move(parts_); }

 private:
  std::vector<WeightPart> parts_;
};

int64_t elements_of(const WeightRef& tensor) {
  int64_t count = 1;
  for (const int64_t dimension : tensor.shape) count *= dimension;
  return count;
}

}  // namespace

int64_t WeightPart::num_elements() const {
  return kind == WeightKind::kLinear ? num_rows * tensor.shape.back() : elements_of(tensor);
}

std::vector<WeightPart> weight_parts(const ModelDescription& model) {
  PartList parts;
  parts.add(WeightKind::kEmbedding, model.embedding);
  for (const LayerDescription& layer : model.layers) parts.add_layer(layer);
  parts.add(WeightKind::kVector, model.final_norm);
  if (model.lm_head) parts.add_linear({*model.lm_head, 0, model.lm_head->shape.front(), ""});
  return parts.take();
}

WeightSizes weight_sizes(const ModelDescription& model) {
  WeightSizes sizes;
  for (const WeightPart& part : weight_parts(model)) {
    const int64_t count = part.num_elements();
    sizes.num_parameters += count;
    switch (part.kind) {
      case WeightKind::kEmbedding:
        sizes.embedding += count;
        break;
      case WeightKind::kVector:
        sizes.vectors += count;
        break;
      case WeightKind::kLinear:
        sizes.linear += count;
        sizes.channels += part.num_rows;
        break;
    }
  }
  if (!model.lm_head) {
    sizes.linear += sizes.embedding;
    sizes.channels += model.embedding.shape.front();
  }
  return sizes;
}

int64_t weight_bytes(const WeightSizes& sizes, DType embedding, DType dtype, bool int8_weights) {
  constexpr auto kFloatBytes = static_cast<int64_t>(sizeof(float));
  const int64_t linear = int8_weights ? sizes.linear + sizes.channels * kFloatBytes
                                      : sizes.linear * static_cast<int64_t>(dtype_size(dtype));
  return linear + sizes.vectors * kFloatBytes +
         sizes.embedding * static_cast<int64_t>(dtype_size(embedding));
}

ModelNeeds needs_of(const ModelDescription& model) {
  ModelNeeds needs;
  for (const LayerDescription& layer : model.layers) {
    needs.score_caps = needs.score_caps || layer.score_cap > 0;
    needs.experts = needs.experts || layer.experts.has_value();
    needs.head_dim = layer.head_dim;
  }
  return needs;
}

}  // namespace anyslot
