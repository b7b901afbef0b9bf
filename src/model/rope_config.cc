#include "model/rope_config.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <string>
#include <string_view>

#include "model/config_reader.h"

namespace anyslot {

namespace {

constexpr double kMaxTheta = 1e12;
constexpr double kDefaultTheta = 10000.0;
constexpr double kMaxFactor = 1e6;

std::string_view read_type(const ConfigReader& reader) {
  static constexpr std::string_view kSupported[] = {"default", "llama3"};
  const std::string_view older = reader.one_of("type", kSupported, "default");
  const std::string_view type = reader.one_of("rope_type", kSupported, older);
  if (reader.has("type") && type != older) {
    reader.fail("type", "and rope_type differ; keep rope_type alone");
  }
  return type;
}

/// What config.json says beside the object that describes the RoPE.
struct Surroundings {
  double theta = kDefaultTheta;
  int64_t max_position_embeddings = 0;
  std::optional<int64_t> original_max_position_embeddings;
};

int64_t read_original_max(const ConfigReader& reader, const Surroundings& around) {
  const int64_t outside =
      around.original_max_position_embeddings.value_or(around.max_position_embeddings);
  const int64_t value =
      reader.integer("original_max_position_embeddings", 1, kMaxPositions, outside);
  if (around.original_max_position_embeddings && value != outside) {
    reader.fail("original_max_position_embeddings",
                "is " + std::to_string(value) + ", but beside the object it is " +
                    std::to_string(outside) + "; keep one of them");
  }
  return value;
}

Llama3RopeScaling read_llama3(const ConfigReader& reader, const Surroundings& around) {
  Llama3RopeScaling scaling;
  scaling.factor = reader.number("factor", 0.0, kMaxFactor);
  if (scaling.factor < 1.0) reader.fail("factor", "is below 1; it must be at least 1");
  scaling.low_freq_factor = reader.number("low_freq_factor", 0.0, kMaxFactor);
  scaling.high_freq_factor = reader.number("high_freq_factor", scaling.low_freq_factor, kMaxFactor);
  scaling.original_max_position_embeddings = read_original_max(reader, around);
  return scaling;
}

void require_whole_heads(const ConfigReader& reader) {
  if (reader.number("partial_rotary_factor", 0.0, 1.0, 1.0) != 1.0) {
    reader.fail("partial_rotary_factor", "is not 1, which is not supported for this architecture");
  }
}

RopeConfig read_object(const ConfigReader& reader, const Surroundings& around) {
  RopeConfig rope;
  rope.theta = reader.number("rope_theta", 1.0, kMaxTheta, around.theta);
  if (read_type(reader) == "llama3") rope.llama3 = read_llama3(reader, around);
  require_whole_heads(reader);
  return rope;
}

/// The rule of transformers' rope type llama3.
double scaled(const Llama3RopeScaling& scaling, double inv_freq) {
  const double turns = static_cast<double>(scaling.original_max_position_embeddings) * inv_freq /
                       (2.0 * std::numbers::pi);
  const double kept =
      (turns - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor);
  return std::lerp(inv_freq / scaling.factor, inv_freq, std::clamp(kept, 0.0, 1.0));
}

}  // namespace

RopeConfig read_rope(const ConfigReader& reader, int64_t max_position_embeddings) {
  require_whole_heads(reader);
  Surroundings around{.theta = reader.number("rope_theta", 1.0, kMaxTheta, kDefaultTheta),
                      .max_position_embeddings = max_position_embeddings,
                      .original_max_position_embeddings = {}};
  if (reader.has("original_max_position_embeddings")) {
    around.original_max_position_embeddings =
        reader.integer("original_max_position_embeddings", 1, kMaxPositions);
  }
  const auto parameters = reader.object("rope_parameters");
  const auto scaling = reader.object("rope_scaling");
  if (!parameters && !scaling) return {.theta = around.theta, .llama3 = {}};
  const RopeConfig rope = read_object(parameters ? *parameters : *scaling, around);
  if (parameters && scaling && read_object(*scaling, around) != rope) {
    reader.fail("rope_scaling", "and rope_parameters differ; keep one of them");
  }
  return rope;
}

RopeParameters describe_rope(const RopeConfig& rope, int head_dim) {
  RopeParameters parameters;
  for (int i = 0; i < head_dim; i += 2) {
    double inv_freq = std::pow(rope.theta, -static_cast<double>(i) / head_dim);
    if (rope.llama3) inv_freq = scaled(*rope.llama3, inv_freq);
    parameters.inv_freq.push_back(inv_freq);
  }
  return parameters;
}

}  // namespace anyslot
