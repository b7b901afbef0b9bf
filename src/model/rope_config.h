#pragma once

#include <cstdint>

#include "backend/rope.h"
#include "model/model_config.h"

namespace anyslot {

class ConfigReader;

inline constexpr int64_t kMaxPositions = int64_t{1} << 30;  // RopeTable serves those below 2^31

/// Reads config.json's `rope_parameters`, or its `rope_theta` and `rope_scaling`, whose `rope_type`
/// older files call `type`; a file with both must mean the same by them. A scaling that does not
/// name the context it stretched has max_position_embeddings for it. Failures, an unsupported type
/// among them, stay in the reader.
RopeConfig read_rope(const ConfigReader& reader, int64_t max_position_embeddings);

/// The rotation that turns all of head_dim.
RopeParameters describe_rope(const RopeConfig& rope, int head_dim);

}  // namespace anyslot
