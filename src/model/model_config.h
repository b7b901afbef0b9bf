#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "anyslot/status.h"
#include "base/hash.h"

namespace anyslot {

/// All dimensions turn `factor` times slower.
struct LinearRopeScaling {
  double factor = 1.0;  // at least 1

  bool operator==(const LinearRopeScaling&) const = default;
};

/// How Llama 3.1 stretched a trained model to longer contexts: dimensions that turn fewer than
/// low_freq_factor times within the original context turn `factor` times slower, those that turn
/// more than high_freq_factor times stay, and between the two it is a straight line.
struct Llama3RopeScaling {
  double factor = 1.0;  // at least 1
  double low_freq_factor = 1.0;
  double high_freq_factor = 4.0;                 // above low_freq_factor
  int64_t original_max_position_embeddings = 0;  // tokens

  bool operator==(const Llama3RopeScaling&) const = default;
};

/// YaRN (arXiv 2309.00071): dimensions that turn fewer than beta_slow times within the original
/// context turn `factor` times slower, those that turn more than beta_fast times stay, and between
/// the two it is a straight line over the dimensions.
struct YarnRopeScaling {
  double factor = 1.0;  // at least 1
  double beta_fast = 32.0;
  double beta_slow = 1.0;
  bool truncate = true;  // the line begins and ends at whole dimensions
  int64_t original_max_position_embeddings = 0;
  double attention_factor = 1.0;  // of the turned Q and of the turned K

  bool operator==(const YarnRopeScaling&) const = default;
};

/// LongRoPE (arXiv 2402.13753): each pair of dimensions turns slower by a factor of its own. A
/// checkpoint has two lists of them, for prompts within the original context and beyond; this is
/// the one that max_model_len asks for, so that cached keys never change.
struct LongRopeScaling {
  std::vector<double> factors;    // [rotary_dim / 2]
  double attention_factor = 1.0;  // of the turned Q and of the turned K

  bool operator==(const LongRopeScaling&) const = default;
};

struct RopeConfig {
  double theta = 0.0;
  int rotary_dim = 0;  // even; the first dimensions of a head, which are turned
  std::variant<std::monostate, LinearRopeScaling, Llama3RopeScaling, YarnRopeScaling,
               LongRopeScaling>
      scaling;

  bool operator==(const RopeConfig&) const = default;
};

/// What Granite and Gemma multiply.
struct Multipliers {
  double embedding = 1.0;
  double scores = 1.0;
  double residual = 1.0;  // what attention and MLP add to the residual stream
  double logits = 1.0;

  bool operator==(const Multipliers&) const = default;
};

/// Layers whose MLP is a sum of some of many, chosen for each token.
struct ExpertsConfig {
  std::vector<bool> layers;  // per layer: whether it has experts. Empty: none has
  int64_t num_experts = 0;
  int64_t per_token = 0;          // at most num_experts
  int64_t intermediate_size = 0;  // of one expert
  bool normalized = false;        // the shares of those chosen are scaled so that their sum is 1
};

/// What config.json and generation_config.json say about a model, validated.
struct ModelConfig {
  std::string architecture;  // config.json's architectures[0]
  int64_t vocab_size = 0;
  int64_t hidden_size = 0;
  int64_t intermediate_size = 0;
  int num_layers = 0;
  int num_heads = 0;  // a multiple of num_kv_heads
  int num_kv_heads = 0;
  int head_dim = 0;  // even; num_heads * head_dim need not be hidden_size
  float rms_norm_eps = 0.0F;
  RopeConfig rope;
  /// Per layer: whether Q and K are turned. Empty: all are.
  std::vector<bool> turned_layers;
  /// Tokens that local layers see back, the token itself among them; 0: all. A window that is as
  /// long as max_model_len hides nothing and is 0 here.
  int64_t window = 0;
  std::vector<bool> local_layers;        // per layer: whether it has the window. Empty: none has
  std::optional<RopeConfig> local_rope;  // of local layers, where they have one of their own
  bool attention_bias = false;           // Q, K, V and O have biases
  bool mlp_bias = false;
  Multipliers multipliers;
  double score_cap = 0.0;  // scores are cap * tanh(score / cap); 0: as they are
  double logit_cap = 0.0;  // logits too
  ExpertsConfig experts;
  int64_t max_position_embeddings = 0;  // tokens that the model was trained for
  /// Tokens of a prompt and its answer together, at most: what was asked for, or else
  /// max_position_embeddings. Longrope and windows depend on it.
  int64_t max_model_len = 0;
  bool tie_word_embeddings = false;
  /// generation_config.json's, or else config.json's. May be empty.
  std::vector<int32_t> eos_token_ids;

  bool is_local(int layer) const {
    return !local_layers.empty() && local_layers[static_cast<size_t>(layer)];
  }
  int64_t window_of(int layer) const { return is_local(layer) ? window : 0; }
  bool has_experts(int layer) const {
    return !experts.layers.empty() && experts.layers[static_cast<size_t>(layer)];
  }

  /// Covers every field that changes what a layer computes; not those that only end a generation.
  Digest fingerprint() const;
};

/// Reads a model folder. Fails with kNotFound without a config.json and with kFailedPrecondition
/// for anything unusable: an architecture that is not in the table of model/architecture.h, a
/// feature that its family does not implement, a value beyond its limits.
/// `max_model_len`: 0 for max_position_embeddings.
Expected<ModelConfig> load_model_config(const std::string& model_dir, int64_t max_model_len = 0);
/// Reads a config.json alone, under any name. Fails like load_model_config.
Expected<ModelConfig> load_config_file(const std::string& path, int64_t max_model_len = 0);

}  // namespace anyslot
