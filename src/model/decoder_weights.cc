#include "model/decoder_weights.h"

#include <array>
#include <initializer_list>
#include <optional>
#include <utility>

#include "model/weight_list.h"

namespace anyslot {

namespace {

/// Loads one weight after another and stops working at the first failure, which status() then
/// tells.
class WeightLoader {
 public:
  WeightLoader(WeightSource& source, Backend& backend, float norm_offset)
      : source_(source), backend_(backend), norm_offset_(norm_offset) {}

  LoadedTensor tensor(const WeightRef& ref) {
    if (!status_) return {};
    Expected<LoadedTensor> loaded = source_.load(ref);
    if (!loaded) {
      status_ = loaded.status();
      return {};
    }
    return std::move(*loaded);
  }

  std::unique_ptr<LinearWeight> pack(std::span<const TensorView> parts) {
    if (!status_) return nullptr;
    Expected<std::unique_ptr<LinearWeight>> weight = backend_.load_linear(parts);
    if (!weight) {
      status_ = weight.status();
      return nullptr;
    }
    return std::move(*weight);
  }

  /// Parts stacked along their rows.
  Projection projection(std::initializer_list<const LinearRef*> refs) {
    std::vector<LoadedTensor> tensors;  // keeps the memory until it is packed
    std::vector<TensorView> parts;
    for (const LinearRef* ref : refs) {
      tensors.push_back(tensor(ref->tensor));
      if (!status_) return {};
      parts.push_back(tensors.back().view.row_range(ref->first_row, ref->num_rows));
    }
    return {pack(parts), biases(refs)};
  }

  /// Empty for a norm that is not there.
  std::vector<float> norm(const std::optional<WeightRef>& ref) {
    if (!ref) return {};
    std::vector<float> values = vector(*ref);
    for (float& value : values) value += norm_offset_;
    return values;
  }

  const Status& status() const { return status_; }

 private:
  std::vector<float> vector(const WeightRef& ref) {
    std::vector<float> values;
    const LoadedTensor loaded = tensor(ref);
    const TensorView& view = loaded.view;
    if (!status_) return values;
    values.reserve(static_cast<size_t>(view.cols));
    for (int64_t i = 0; i < view.cols; ++i) {
      values.push_back(load_element(view.data, view.dtype, static_cast<size_t>(i)));
    }
    return values;
  }

  /// 0 for a part without one; empty when none has one.
  std::vector<float> biases(std::initializer_list<const LinearRef*> refs) {
    std::vector<float> all;
    bool any = false;
    for (const LinearRef* ref : refs) {
      const std::vector<float> bias = ref->bias.empty()
                                          ? std::vector<float>(static_cast<size_t>(ref->num_rows))
                                          : vector({ref->bias, {ref->num_rows}});
      all.insert(all.end(), bias.begin(), bias.end());
      any = any || !ref->bias.empty();
    }
    return any ? all : std::vector<float>();
  }

  WeightSource& source_;
  Backend& backend_;
  float norm_offset_;
  Status status_;
};

void load_experts(const ExpertsDescription& description, WeightLoader& loader,
                  DecoderLayer& layer) {
  layer.router = loader.projection({&description.router});
  layer.expert_choice = {description.per_token, description.normalized};
  for (const MlpDescription& expert : description.experts) {
    layer.experts.push_back(
        {loader.projection({&expert.gate, &expert.up}), loader.projection({&expert.down})});
    if (!loader.status()) return;
  }
}

DecoderLayer load_layer(const LayerDescription& description, const RopeTable& rope, bool last,
                        WeightLoader& loader) {
  DecoderLayer layer;
  layer.attention = {.num_heads = description.num_heads,
                     .num_kv_heads = description.num_kv_heads,
                     .head_dim = description.head_dim,
                     .scale = description.scale,
                     .window = description.window,
                     .rope = &rope,
                     .score_cap = description.score_cap};
  layer.attention_norm = loader.norm(description.attention_norm);
  if (last) {
    layer.q = loader.projection({&description.q});
    layer.kv = loader.projection({&description.k, &description.v});
  } else {
    layer.qkv = loader.projection({&description.q, &description.k, &description.v});
  }
  layer.q_norm = loader.norm(description.q_norm);
  layer.k_norm = loader.norm(description.k_norm);
  layer.o = loader.projection({&description.o});
  layer.attention_post_norm = loader.norm(description.attention_post_norm);
  layer.mlp_norm = loader.norm(description.mlp_norm);
  layer.activation = description.activation;
  if (description.experts) {
    load_experts(*description.experts, loader, layer);
  } else {
    layer.gate_up = loader.projection({&description.mlp.gate, &description.mlp.up});
    layer.down = loader.projection({&description.mlp.down});
  }
  layer.mlp_post_norm = loader.norm(description.mlp_post_norm);
  layer.residual_multiplier = description.residual_multiplier;
  return layer;
}

float rounded(float value, DType dtype) {
  float stored = 0.0F;  // as wide as any type
  store_element(&stored, dtype, 0, value);
  return load_element(&stored, dtype, 0);
}

}  // namespace

Expected<DecoderWeights> load_decoder_weights(const ModelDescription& description,
                                              WeightSource& source, Backend& backend) {
  if (Status status = backend.check_needs(needs_of(description)); !status) return status;
  WeightLoader loader(source, backend, description.norm_offset);
  DecoderWeights weights;
  for (const RopeParameters& rope : description.ropes) {
    weights.ropes.push_back(std::make_unique<RopeTable>(rope));
  }
  weights.embedding = loader.tensor(description.embedding);
  weights.embedding_multiplier =
      description.rounds_embedding_multiplier
          ? rounded(description.embedding_multiplier, backend.activation_dtype())
          : description.embedding_multiplier;
  weights.logit_cap = description.logit_cap;
  for (const LayerDescription& layer : description.layers) {
    const bool last = &layer == &description.layers.back();
    weights.layers.push_back(
        load_layer(layer, *weights.ropes[static_cast<size_t>(layer.rope)], last, loader));
    if (!loader.status()) return loader.status();
  }
  weights.final_norm = loader.norm(description.final_norm);
  for (float& value : weights.final_norm) value *= description.logits_multiplier;
  const LoadedTensor lm_head =
      description.lm_head ? loader.tensor(*description.lm_head) : LoadedTensor();
  weights.lm_head =
      loader.pack(std::array{description.lm_head ? lm_head.view : weights.embedding.view});
  if (!loader.status()) return loader.status();
  weights.num_parameters = weight_sizes(description).num_parameters;
  return weights;
}

}  // namespace anyslot
