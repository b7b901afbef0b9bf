#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "anyslot/status.h"
#include "base/hash.h"

namespace anyslot {

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

struct RopeConfig {
  double theta = 0.0;
  std::optional<Llama3RopeScaling> llama3;  // nullopt: not scaled

  bool operator==(const RopeConfig&) const = default;
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
  int64_t max_position_embeddings = 0;  // tokens that the model was trained for
  bool tie_word_embeddings = false;
  /// generation_config.json's, or else config.json's. May be empty.
  std::vector<int32_t> eos_token_ids;

  /// Covers every field that changes what a layer computes; not those that only end a generation.
  Digest fingerprint() const;
};

/// Reads a model folder. Fails with kNotFound without a config.json and with kFailedPrecondition
/// for anything unusable: an architecture that is not in the table of model/architecture.h, a
/// feature that its family does not implement, a value beyond its limits.
Expected<ModelConfig> load_model_config(const std::string& model_dir);
/// Reads a config.json alone, under any name. Fails like load_model_config.
Expected<ModelConfig> load_config_file(const std::string& path);

}  // namespace anyslot
