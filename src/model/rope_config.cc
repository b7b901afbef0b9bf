#include "model/rope_config.h"

#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/config_reader.h"

namespace anyslot {

namespace {

constexpr double kMaxTheta = 1e12;
constexpr double kMaxFactor = 1e6;

/// What config.json says beside the object that describes the RoPE.
struct Surroundings {
  RopeContext context;
  double theta = 0.0;
  double rotary_share = 1.0;
  std::optional<int64_t> original_max_position_embeddings;
};

std::string_view read_type(const ConfigReader& reader) {
  static constexpr std::string_view kSupported[] = {"default", "linear",   "llama3",
                                                    "yarn",    "longrope", "su"};
  const auto read = [&](std::string_view key, std::string_view fallback) {
    const std::string_view type = reader.one_of(key, kSupported, fallback);
    return type == "su" ? "longrope" : type;  // its first name
  };
  const std::string_view older = read("type", "default");
  const std::string_view type = read("rope_type", older);
  if (reader.has("type") && type != older) {
    reader.fail("type", "and rope_type differ; keep rope_type alone");
  }
  return type;
}

int64_t read_original_max(const ConfigReader& reader, const Surroundings& around) {
  const int64_t outside =
      around.original_max_position_embeddings.value_or(around.context.max_position_embeddings);
  const int64_t value =
      reader.integer("original_max_position_embeddings", 1, kMaxPositions, outside);
  if (around.original_max_position_embeddings && value != outside) {
    reader.fail("original_max_position_embeddings",
                "is " + std::to_string(value) + ", but beside the object it is " +
                    std::to_string(outside) + "; keep one of them");
  }
  return value;
}

double read_factor(const ConfigReader& reader, std::optional<double> fallback = std::nullopt) {
  const double factor = reader.number("factor", 0.0, kMaxFactor, fallback);
  if (factor < 1.0) reader.fail("factor", "is below 1; it must be at least 1");
  return factor;
}

Llama3RopeScaling read_llama3(const ConfigReader& reader, const Surroundings& around) {
  Llama3RopeScaling scaling;
  scaling.factor = read_factor(reader);
  scaling.low_freq_factor = reader.number("low_freq_factor", 0.0, kMaxFactor);
  scaling.high_freq_factor = reader.number("high_freq_factor", scaling.low_freq_factor, kMaxFactor);
  scaling.original_max_position_embeddings = read_original_max(reader, around);
  return scaling;
}

/// What YaRN multiplies Q and K by when the file does not say it.
double yarn_attention_factor(const ConfigReader& reader, double factor) {
  const auto rule = [factor](double scale) { return 0.1 * scale * std::log(factor) + 1.0; };
  if (reader.has("mscale") && reader.has("mscale_all_dim")) {
    const double all = reader.number("mscale_all_dim", 0.0, kMaxFactor);
    return rule(reader.number("mscale", 0.0, kMaxFactor)) / rule(all);
  }
  return rule(1.0);
}

YarnRopeScaling read_yarn(const ConfigReader& reader, const Surroundings& around) {
  YarnRopeScaling scaling;
  scaling.factor = read_factor(reader);
  scaling.beta_slow = reader.number("beta_slow", 0.0, kMaxFactor, scaling.beta_slow);
  scaling.beta_fast = reader.number("beta_fast", scaling.beta_slow, kMaxFactor, scaling.beta_fast);
  scaling.truncate = reader.boolean("truncate", scaling.truncate);
  scaling.original_max_position_embeddings = read_original_max(reader, around);
  scaling.attention_factor = reader.number("attention_factor", 0.0, kMaxFactor,
                                           yarn_attention_factor(reader, scaling.factor));
  return scaling;
}

LongRopeScaling read_longrope(const ConfigReader& reader, const Surroundings& around,
                              int rotary_dim) {
  const int64_t original = read_original_max(reader, around);
  const double ratio =
      static_cast<double>(around.context.max_position_embeddings) / static_cast<double>(original);
  const double factor = reader.number("factor", 0.0, kMaxFactor, ratio);
  const double by_rule =
      factor <= 1.0 ? 1.0
                    : std::sqrt(1.0 + std::log(factor) / std::log(static_cast<double>(original)));
  LongRopeScaling scaling;
  scaling.attention_factor = reader.number("attention_factor", 0.0, kMaxFactor, by_rule);
  const bool beyond = around.context.max_model_len > original;
  for (const std::string_view key : {"short_factor", "long_factor"}) {
    std::vector<double> factors = reader.numbers(key, 0.0, kMaxFactor);
    if (static_cast<int>(2 * factors.size()) != rotary_dim) {
      reader.fail(key, "has " + std::to_string(factors.size()) + " numbers for " +
                           std::to_string(rotary_dim / 2) + " pairs of dimensions");
    }
    if ((key == "long_factor") == beyond) scaling.factors = std::move(factors);
  }
  return scaling;
}

double read_rotary_share(const ConfigReader& reader, RotaryPart rotary, double fallback) {
  const double share = reader.number("partial_rotary_factor", 0.0, 1.0, fallback);
  if (share != 1.0 && rotary == RotaryPart::kAll) {
    reader.fail("partial_rotary_factor", "is not 1, which is not supported for this architecture");
  }
  return share;
}

int rotary_dim_of(const ConfigReader& reader, int head_dim, double share) {
  const int rotary_dim = static_cast<int>(head_dim * share);
  if (rotary_dim < 2 || rotary_dim % 2 != 0) {
    reader.fail("partial_rotary_factor", "turns " + std::to_string(rotary_dim) + " of " +
                                             std::to_string(head_dim) +
                                             " dimensions; it must turn an even number of them");
  }
  return rotary_dim;
}

RopeConfig read_object(const ConfigReader& reader, const Surroundings& around) {
  const RopeContext& context = around.context;
  RopeConfig rope;
  rope.theta = reader.number("rope_theta", 1.0, kMaxTheta, around.theta);
  rope.rotary_dim = rotary_dim_of(reader, context.head_dim,
                                  read_rotary_share(reader, context.rotary, around.rotary_share));
  const std::string_view type = read_type(reader);
  if (type == "linear") rope.scaling = LinearRopeScaling{read_factor(reader)};
  if (type == "llama3") rope.scaling = read_llama3(reader, around);
  if (type == "yarn") rope.scaling = read_yarn(reader, around);
  if (type == "longrope") rope.scaling = read_longrope(reader, around, rope.rotary_dim);
  return rope;
}

/// rope_parameters: an object of fields or, in newer files, one such object for each kind of
/// layers.
std::optional<ConfigReader> find_parameters(const ConfigReader& reader, std::string_view kind) {
  std::optional<ConfigReader> parameters = reader.object("rope_parameters");
  if (!parameters) return parameters;
  for (const std::string_view of : {"full_attention", "sliding_attention"}) {
    if (kind.empty() && parameters->has(of)) {
      parameters->fail(of, "is a RoPE of its own, which is not supported for this architecture");
    }
  }
  return !kind.empty() && parameters->has(kind) ? parameters->object(kind) : parameters;
}

}  // namespace

RopeConfig read_rope(const ConfigReader& reader, const RopeContext& context) {
  Surroundings around;
  around.context = context;
  around.theta = reader.number("rope_theta", 1.0, kMaxTheta, context.default_theta);
  around.rotary_share = read_rotary_share(reader, context.rotary, 1.0);
  if (reader.has("original_max_position_embeddings")) {
    around.original_max_position_embeddings =
        reader.integer("original_max_position_embeddings", 1, kMaxPositions);
  }
  const auto parameters = find_parameters(reader, context.layer_kind);
  const auto scaling = reader.object("rope_scaling");
  if (!parameters && !scaling) {
    return {around.theta, rotary_dim_of(reader, context.head_dim, around.rotary_share), {}};
  }
  RopeConfig rope = read_object(parameters ? *parameters : *scaling, around);
  if (parameters && scaling && read_object(*scaling, around) != rope) {
    reader.fail("rope_scaling", "and rope_parameters differ; keep one of them");
  }
  return rope;
}

RopeConfig read_rope_object(const ConfigReader& object, const RopeContext& context) {
  return read_object(object, {context, context.default_theta, 1.0, std::nullopt});
}

RopeConfig read_plain_rope(const ConfigReader& reader, std::string_view key,
                           const RopeContext& context) {
  return {reader.number(key, 1.0, kMaxTheta, context.default_theta), context.head_dim, {}};
}

}  // namespace anyslot
