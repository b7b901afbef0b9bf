#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/function_ref.h"
#include "model/architecture.h"
#include "model/config_reader.h"
#include "model/model_config.h"
#include "model/rope_config.h"

// What families share.

namespace anyslot {

/// Columns of a layer's matrices, at most.
inline constexpr int64_t kMaxWidth = int64_t{1} << 20;

/// What a config.json means that does not say it, and what it may say.
struct FamilyTraits {
  bool tied_by_default = false;
  RotaryPart rotary = RotaryPart::kAll;
  double default_theta = 10000.0;
  std::string_view rope_kind = {};  // see RopeContext::layer_kind
  bool has_windows = false;         // else layers that have one are refused
  std::string_view activation_key = "hidden_act";
  std::string_view activation = "silu";
};

/// The fields that all families have.
void read_common_config(const ConfigReader& reader, const FamilyTraits& traits,
                        ModelConfig& config);

/// attention_bias and, where the family has it, mlp_bias.
void read_biases(const ConfigReader& reader, bool has_mlp_bias, ModelConfig& config);

/// Says of a layer whether it has the window, where layer_types does not say it.
using LocalRule = FunctionRef<bool(int layer)>;

inline constexpr auto kEveryLayer = [](int) { return true; };

/// sliding_window and the layers that have it. Needs what read_common_config reads.
void read_window(const ConfigReader& reader, LocalRule rule, ModelConfig& config);
/// The same where use_sliding_window must be true for it to mean anything.
void read_optional_window(const ConfigReader& reader, LocalRule rule, ModelConfig& config);
/// The rule of the Qwen families: the first max_window_layers layers see everything.
void read_qwen_window(const ConfigReader& reader, ModelConfig& config);

/// What read_rope and its kin ask of a config that read_common_config has read.
RopeContext rope_context(const FamilyTraits& traits, const ModelConfig& config);

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
