// SmolLM3ForCausalLM: Llama's form, with some layers whose Q and K are not turned.

#include <cstddef>
#include <vector>

#include "model/families/common.h"
#include "model/families/families.h"

namespace anyslot {

namespace {

/// no_rope_layers has a 1 for each layer that is turned and a 0 for the others; without it every
/// no_rope_layer_interval-th layer is not.
std::vector<bool> read_turned_layers(const ConfigReader& reader, int num_layers) {
  const auto listed = reader.integers("no_rope_layers", 0, 1);
  std::vector<bool> turned(listed.begin(), listed.end());
  if (reader.has("no_rope_layers")) {
    if (static_cast<int>(turned.size()) != num_layers) {
      reader.fail("no_rope_layers", "has " + std::to_string(turned.size()) + " numbers for " +
                                        std::to_string(num_layers) + " layers");
    }
    return turned;
  }
  const int64_t interval = reader.integer("no_rope_layer_interval", 1, kMaxPositions, 4);
  for (int i = 0; i < num_layers; ++i) turned.push_back((i + 1) % interval != 0);
  return turned;
}

}  // namespace

void read_smollm3_config(const ConfigReader& reader, ModelConfig& config) {
  read_common_config(reader, {.tied_by_default = true, .has_windows = true}, config);
  read_biases(reader, true, config);
  config.turned_layers = read_turned_layers(reader, config.num_layers);
  const std::vector<bool>& turned = config.turned_layers;
  const auto is_local = [&turned](int layer) { return !turned[static_cast<size_t>(layer)]; };
  if (reader.ok()) read_optional_window(reader, is_local, config);
}

ModelDescription describe_smollm3(const ModelConfig& config) {
  ModelDescription model = describe_common(config);
  model.ropes.push_back(no_rotation(config.head_dim));
  for (size_t i = 0; i < model.layers.size(); ++i) {
    if (!config.turned_layers[i]) model.layers[i].rope = 1;
  }
  return model;
}

}  // namespace anyslot
