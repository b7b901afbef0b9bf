#pragma once

#include <cstdint>
#include <string>

#include "anyslot/status.h"

namespace anyslot {

/// What a config.json says of a model's size under the names that nearly all families use. For
/// people: nothing is checked, so models that cannot be run have one too. 0: not said.
struct ConfigOutline {
  std::string architecture;
  int64_t num_layers = 0;
  int64_t num_heads = 0;
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;
  int64_t hidden_size = 0;
  int64_t vocab_size = 0;
  int64_t max_position_embeddings = 0;
  int64_t num_experts = 0;
  int64_t experts_per_token = 0;
};

/// Of a model's folder. Fails as load_model_config does when there is no config.json that names an
/// architecture.
Expected<ConfigOutline> load_config_outline(const std::string& model_dir);

}  // namespace anyslot
