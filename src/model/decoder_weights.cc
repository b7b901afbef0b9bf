#include "model/decoder_weights.h"

#include <array>
#include <initializer_list>
#include <utility>

namespace anyslot {

namespace {

/// Loads one weight after another and stops working at the first failure, which status() then
/// tells.
class WeightLoader {
 public:
  WeightLoader(WeightSource& source, Backend& backend) : source_(source), backend_(backend) {}

  LoadedTensor tensor(const WeightRef& ref) {
    if (!status_) return {};
    Expected<LoadedTensor> loaded = source_.load(ref);
    if (!loaded) {
      status_ = loaded.status();
      return {};
    }
    num_parameters_ += loaded->view.rows * loaded->view.cols;
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
  std::unique_ptr<LinearWeight> linear(std::initializer_list<const WeightRef*> refs) {
    std::vector<LoadedTensor> tensors;  // keeps the memory until it is packed
    std::vector<TensorView> parts;
    for (const WeightRef* ref : refs) {
      tensors.push_back(tensor(*ref));
      parts.push_back(tensors.back().view);
    }
    return pack(parts);
  }

  std::vector<float> vector(const WeightRef& ref) {
    const LoadedTensor loaded = tensor(ref);
    const TensorView& view = loaded.view;
    std::vector<float> values;
    if (!status_) return values;
    values.reserve(static_cast<size_t>(view.cols));
    for (int64_t i = 0; i < view.cols; ++i) {
      values.push_back(load_element(view.data, view.dtype, static_cast<size_t>(i)));
    }
    return values;
  }

  int64_t num_parameters() const { return num_parameters_; }
  const Status& status() const { return status_; }

 private:
  WeightSource& source_;
  Backend& backend_;
  Status status_;
  int64_t num_parameters_ = 0;
};

DecoderLayer load_layer(const LayerDescription& description, const RopeTable& rope, bool last,
                        WeightLoader& loader) {
  DecoderLayer layer;
  layer.attention = {.num_heads = description.num_heads,
                     .num_kv_heads = description.num_kv_heads,
                     .head_dim = description.head_dim,
                     .scale = description.scale,
                     .window = description.window,
                     .rope = &rope};
  layer.attention_norm = loader.vector(description.attention_norm);
  if (last) {
    layer.q = loader.linear({&description.q});
    layer.kv = loader.linear({&description.k, &description.v});
  } else {
    layer.qkv = loader.linear({&description.q, &description.k, &description.v});
  }
  layer.o = loader.linear({&description.o});
  layer.mlp_norm = loader.vector(description.mlp_norm);
  layer.gate_up = loader.linear({&description.gate, &description.up});
  layer.down = loader.linear({&description.down});
  return layer;
}

}  // namespace

Expected<DecoderWeights> load_decoder_weights(const ModelDescription& description,
                                              WeightSource& source, Backend& backend) {
  WeightLoader loader(source, backend);
  DecoderWeights weights;
  for (const RopeParameters& rope : description.ropes) {
    weights.ropes.push_back(std::make_unique<RopeTable>(rope));
  }
  weights.embedding = loader.tensor(description.embedding);
  for (const LayerDescription& layer : description.layers) {
    const bool last = &layer == &description.layers.back();
    weights.layers.push_back(
        load_layer(layer, *weights.ropes[static_cast<size_t>(layer.rope)], last, loader));
    if (!loader.status()) return loader.status();
  }
  weights.final_norm = loader.vector(description.final_norm);
  weights.lm_head = description.lm_head ? loader.linear({&*description.lm_head})
                                        : loader.pack(std::array{weights.embedding.view});
  if (!loader.status()) return loader.status();
  weights.num_parameters = loader.num_parameters();
  return weights;
}

}  // namespace anyslot
