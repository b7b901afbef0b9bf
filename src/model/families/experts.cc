// MixtralForCausalLM and Qwen3MoeForCausalLM: Mistral and Qwen 3 with experts for MLPs.

#include <algorithm>
#include <string>
#include <utility>

#include "model/families/common.h"
#include "model/families/families.h"

namespace anyslot {

namespace {

constexpr int64_t kMaxExperts = 4096;

/// num_local_experts, which some files call num_experts; and how many of them a token gets.
void read_experts(const ConfigReader& reader, ModelConfig& config) {
  ExpertsConfig& experts = config.experts;
  const bool local = reader.has("num_local_experts");
  experts.num_experts = reader.integer(local ? "num_local_experts" : "num_experts", 1, kMaxExperts);
  if (local &&
      reader.integer("num_experts", 1, kMaxExperts, experts.num_experts) != experts.num_experts) {
    reader.fail("num_experts", "and num_local_experts differ; keep one of them");
  }
  experts.per_token = reader.integer("num_experts_per_tok", 1, experts.num_experts);
}

/// The names of an expert's weights.
struct ExpertNames {
  std::string gate;
  std::string up;
  std::string down;
};

/// Gives a layer experts; `block` is what the names of their tensors begin with.
void add_experts(const ModelConfig& config, const std::string& block, const ExpertNames& names,
                 LayerDescription& layer) {
  const int64_t hidden = config.hidden_size;
  const int64_t width = config.experts.intermediate_size;
  ExpertsDescription description;
  description.router = whole(block + "gate.weight", config.experts.num_experts, hidden);
  for (int64_t e = 0; e < config.experts.num_experts; ++e) {
    const std::string prefix = block + "experts." + std::to_string(e) + ".";
    description.experts.push_back({whole(prefix + names.gate, width, hidden),
                                   whole(prefix + names.up, width, hidden),
                                   whole(prefix + names.down, hidden, width)});
  }
  description.per_token = static_cast<int>(config.experts.per_token);
  description.normalized = config.experts.normalized;
  layer.experts = std::move(description);
}

}  // namespace

void read_mixtral_config(const ConfigReader& reader, ModelConfig& config) {
  read_common_config(reader, {.default_theta = 1e6, .has_windows = true}, config);
  read_window(reader, kEveryLayer, config);
  read_experts(reader, config);
  config.experts.layers.assign(static_cast<size_t>(config.num_layers), true);
  config.experts.intermediate_size = config.intermediate_size;
  config.experts.normalized = true;
}

ModelDescription describe_mixtral(const ModelConfig& config) {
  ModelDescription model = describe_common(config);
  for (int i = 0; i < config.num_layers; ++i) {
    add_experts(config, layer_prefix(i) + "block_sparse_moe.",
                {"w1.weight", "w3.weight", "w2.weight"}, model.layers[static_cast<size_t>(i)]);
  }
  return model;
}

/// Every decoder_sparse_step-th layer has experts, but for those in mlp_only_layers.
void read_qwen3_moe_config(const ConfigReader& reader, ModelConfig& config) {
  read_common_config(reader, {.has_windows = true}, config);
  read_biases(reader, false, config);
  read_optional_window(reader, kEveryLayer, config);
  read_experts(reader, config);
  config.experts.intermediate_size = reader.integer("moe_intermediate_size", 1, kMaxWidth);
  config.experts.normalized = reader.boolean("norm_topk_prob", false);
  const int64_t step = reader.integer("decoder_sparse_step", 1, kMaxPositions, 1);
  const auto dense = reader.integers("mlp_only_layers", 0, config.num_layers - 1);
  for (int i = 0; i < config.num_layers; ++i) {
    const bool listed = std::ranges::find(dense, i) != dense.end();
    config.experts.layers.push_back(!listed && (i + 1) % step == 0);
  }
}

ModelDescription describe_qwen3_moe(const ModelConfig& config) {
  ModelDescription model = describe_qwen3(config);
  for (int i = 0; i < config.num_layers; ++i) {
    if (!config.has_experts(i)) continue;
    add_experts(config, layer_prefix(i) + "mlp.",
                {"gate_proj.weight", "up_proj.weight", "down_proj.weight"},
                model.layers[static_cast<size_t>(i)]);
  }
  return model;
}

}  // namespace anyslot
