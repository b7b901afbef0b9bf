#pragma once

#include <string>
#include <string_view>

#include "anyslot/status.h"
#include "model/gguf/gguf_file.h"

namespace anyslot {

/// A family as GGUF files have it: one row of the table in gguf_architecture.cc.
struct GgufArchitecture {
  std::string_view name;           // general.architecture, which also begins the family's keys
  std::string_view family;         // its row in the table of model/architecture.h
  std::string_view windowed = {};  // its row for files that name a window; empty: none has one
  /// The rows of Q and K stand in another order: see undo_permutation in gguf_weights.cc.
  bool permuted = false;
  /// The tensor that Hugging Face calls post_attention_layernorm.
  std::string_view post_attention_norm = "ffn_norm";
  bool has_multipliers = false;  // Granite's
  /// Weights of norms have the 1 that their family counts from already; soft caps; and what
  /// add_gemma in gguf_config.cc adds.
  bool is_gemma = false;
};

/// The file's row of the table. Fails with kFailedPrecondition when there is none.
Expected<const GgufArchitecture*> gguf_architecture(const GgufFile& file);

/// What a GGUF file calls the tensor that a Hugging Face folder calls `name`; empty for one that
/// the format has no name for.
std::string gguf_tensor_name(const GgufArchitecture& architecture, std::string_view name);

/// Factors by which pairs of dimensions turn slower. They belong to the RoPE, not to the weights.
inline constexpr std::string_view kRopeFreqs = "rope_freqs.weight";
inline constexpr std::string_view kRopeFactorsShort = "rope_factors_short.weight";
inline constexpr std::string_view kRopeFactorsLong = "rope_factors_long.weight";

/// Whether a tensor is one of these.
constexpr bool is_rope_tensor(std::string_view name) {
  return name == kRopeFreqs || name == kRopeFactorsShort || name == kRopeFactorsLong;
}

}  // namespace anyslot
