#pragma once

#include <cstdint>
#include <string_view>

#include "backend/rope.h"
#include "model/model_config.h"

namespace anyslot {

class ConfigReader;

inline constexpr int64_t kMaxPositions = int64_t{1} << 30;  // RopeTable serves those below 2^31

/// What of a head a family's config may say is turned: partial_rotary_factor.
enum class RotaryPart : uint8_t { kAll, kAnyShare };

/// What the meaning of the RoPE's fields depends on.
struct RopeContext {
  int head_dim = 0;
  RotaryPart rotary = RotaryPart::kAll;
  int64_t max_position_embeddings = 0;
  int64_t max_model_len = 0;
  double default_theta = 10000.0;  // where the file has none
  /// The kind of layers (of layer_types) whose RoPE it is, in files that have one for each kind.
  /// Empty: the family has one for all, and such files are refused.
  std::string_view layer_kind = {};
};

/// Reads config.json's `rope_parameters`, or its `rope_theta` and `rope_scaling`, whose `rope_type`
/// older files call `type`; a file with both must mean the same by them. A scaling that does not
/// name the context it stretched has max_position_embeddings for it. Failures, an unsupported type
/// among them, stay in the reader.
RopeConfig read_rope(const ConfigReader& reader, const RopeContext& context);

/// The same for an object with the fields of one RoPE alone, theta among them.
RopeConfig read_rope_object(const ConfigReader& object, const RopeContext& context);
/// A RoPE without scaling that turns whole heads; `key` names its theta.
RopeConfig read_plain_rope(const ConfigReader& reader, std::string_view key,
                           const RopeContext& context);

RopeParameters describe_rope(const RopeConfig& rope);

/// Angle 0 at every position, for layers whose Q and K are not turned.
RopeParameters no_rotation(int head_dim);

}  // namespace anyslot
