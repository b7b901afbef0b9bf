#pragma once

#include <cstdint>
#include <string>

#include "model/architecture.h"
#include "model/config_reader.h"
#include "model/model_config.h"
#include "model/rope_config.h"

// What families share.

namespace anyslot {

/// What a config.json means that does not say it, and what it may say.
struct FamilyTraits {
  bool tied_by_default = false;
  RotaryPart rotary = RotaryPart::kAll;
};

/// The fields that all families have.
void read_common_config(const ConfigReader& reader, const FamilyTraits& traits,
                        ModelConfig& config);

/// attention_bias and, where the family has it, mlp_bias.
void read_biases(const ConfigReader& reader, bool has_mlp_bias, ModelConfig& config);

/// sliding_window. One that is as long as max_model_len hides nothing; a shorter one is refused.
/// Needs what read_common_config reads.
void read_window(const ConfigReader& reader, const ModelConfig& config);
/// The same where use_sliding_window must be true for it to mean anything.
void read_optional_window(const ConfigReader& reader, const ModelConfig& config);

/// A decoder of Llama's form, with the biases that the config asks for.
ModelDescription describe_common(const ModelConfig& config);

/// What the names of a layer's tensors begin with.
std::string layer_prefix(int layer);
/// All rows of a tensor [out_features, in_features].
LinearRef whole(std::string name, int64_t out_features, int64_t in_features);
/// Rows of a tensor that holds several weights.
LinearRef rows_of(const WeightRef& tensor, int64_t first_row, int64_t num_rows);
/// The bias stands beside the weight: x.weight, x.bias.
void add_bias(LinearRef& weight);

}  // namespace anyslot
