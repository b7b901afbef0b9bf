#include "model/gguf/gguf_rope.h"

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "model/gguf/gguf_architecture.h"
#include "model/json_file.h"

namespace anyslot {

namespace {

using nlohmann::json;

/// Numbers of a float32 tensor that describes the RoPE; empty when there is none.
std::vector<double> read_factors(const GgufFields& fields, std::string_view name) {
  std::vector<double> factors;
  const GgufTensor* tensor = fields.file().find_tensor(name);
  if (tensor == nullptr) return factors;
  if (tensor->type->dtype != DType::kFloat32 || tensor->shape.size() != 1) {
    fields.fail(failed_precondition(fields.file().path() + ": tensor " + quote_name(name) +
                                    " must be a list of type F32"));
    return factors;
  }
  const std::span<const std::byte> data = fields.file().data(*tensor);
  for (size_t at = 0; at < data.size(); at += sizeof(float)) {
    float factor;
    std::memcpy(&factor, data.data() + at, sizeof factor);
    factors.push_back(factor);
  }
  return factors;
}

/// The share of a head's dimensions that are turned, such that the product with head_dim, rounded
/// down, gives their number back.
double rotary_share(int64_t rotary_dim, int64_t head_dim) {
  const auto width = static_cast<double>(head_dim);
  double share = static_cast<double>(rotary_dim) / width;
  while (width * share < static_cast<double>(rotary_dim)) share = std::nextafter(share, 2.0);
  return share;
}

void add_rotary_share(ArchitectureKeys& keys, json& config) {
  const std::string key = keys.name("rope.dimension_count");
  const auto rotary_dim = keys.fields().integer(key);
  const int64_t num_heads = config.value("num_attention_heads", int64_t{0});
  if (!rotary_dim || num_heads <= 0) return;
  const int64_t head_dim =
      config.value("head_dim", config.value("hidden_size", int64_t{0}) / num_heads);
  if (*rotary_dim == head_dim) return;
  if (*rotary_dim < 2 || *rotary_dim > head_dim) {
    keys.fields().fail(key, "is " + std::to_string(*rotary_dim) + "; heads have " +
                                std::to_string(head_dim) + " dimensions");
    return;
  }
  config["partial_rotary_factor"] = rotary_share(*rotary_dim, head_dim);
}

/// Lists of factors, one for prompts within the original context and one for longer ones.
json listed_factors(const std::vector<double>& within, const std::vector<double>& beyond) {
  return {{"rope_type", "longrope"}, {"short_factor", within}, {"long_factor", beyond}};
}

/// Factors of Llama 3.1: the same at every length, and no scaling of Q and K.
json llama3_scaling(const std::vector<double>& factors, const json& config) {
  json scaling = listed_factors(factors, factors);
  scaling["attention_factor"] = 1.0;
  scaling["original_max_position_embeddings"] = config.value("max_position_embeddings", 0);
  return scaling;
}

class ScalingReader {
 public:
  explicit ScalingReader(ArchitectureKeys& keys)
      : fields_(keys.fields()),
        type_(fields_.text(keys.name("rope.scaling.type"))),
        factor_key_(keys.name("rope.scaling.factor")),
        factor_(fields_.number(factor_key_)),
        original_(fields_.integer(keys.name("rope.scaling.original_context_length"))),
        attention_key_(keys.name("rope.scaling.attn_factor")),
        attention_(fields_.number(attention_key_)),
        type_key_(keys.name("rope.scaling.type")) {
    const auto older = fields_.number(keys.name("rope.scale_linear"));
    if (!factor_) factor_ = older;
    for (const char* name : {"beta_fast", "beta_slow"}) {
      const auto beta = fields_.number(keys.name(std::string("rope.scaling.yarn_") + name));
      if (beta) betas_[name] = *beta;
    }
    require(keys.name("rope.scaling.yarn_ext_factor"), 1.0);
    require(keys.name("rope.scaling.yarn_log_multiplier"), 0.0);
    refuse(keys.name("rope.scaling.yarn_attn_factor"));
  }

  /// config.json's rope_scaling, or null.
  json read(const json& config) {
    const std::vector<double> freqs = read_factors(fields_, kRopeFreqs);
    const std::vector<double> within = read_factors(fields_, kRopeFactorsShort);
    const std::vector<double> beyond = read_factors(fields_, kRopeFactorsLong);
    const bool has_factor = factor_.value_or(1.0) != 1.0;
    const bool has_lists = !within.empty() || !beyond.empty();
    if (has_factor && (!freqs.empty() || has_lists || type_ == "none")) {
      fields_.fail(factor_key_, type_ == "none" ? "does not go with the type \"none\""
                                                : "does not go with tensors of factors");
    }
    if (!freqs.empty()) {
      if (type_.value_or("none") != "none" || has_lists) {
        fields_.fail(type_key_, "does not go with the tensor \"rope_freqs.weight\"");
      }
      require(attention_key_, 1.0);
      return llama3_scaling(freqs, config);
    }
    if (has_lists) return longrope(type_.value_or("none"), within, beyond);
    const std::string_view type = type_.value_or(has_factor ? "linear" : "none");
    if (type == "yarn") return yarn();
    require(attention_key_, 1.0);
    if (type == "linear") return linear();
    if (type == "none") return {};
    fields_.fail(type_key_, "is " + quote_name(type) +
                                (type == "longrope" ? ", but its tensors of factors are missing"
                                                    : ", which is not supported"));
    return {};
  }

 private:
  json linear() const {
    if (!factor_) {
      fields_.fail(factor_key_, "is missing");
      return {};
    }
    return {{"rope_type", "linear"}, {"factor", *factor_}};
  }

  json yarn() {
    require(attention_key_, 1.0);
    json scaling = betas_;
    scaling["rope_type"] = "yarn";
    if (factor_) scaling["factor"] = *factor_;
    if (original_) scaling["original_max_position_embeddings"] = *original_;
    return scaling;
  }

  json longrope(std::string_view type, const std::vector<double>& within,
                const std::vector<double>& beyond) {
    if (type != "none" && type != "longrope") {
      fields_.fail(type_key_, "is " + quote_name(type) + ", but there are tensors of factors");
    }
    json scaling = listed_factors(within, beyond);
    if (original_) scaling["original_max_position_embeddings"] = *original_;
    if (attention_) scaling["attention_factor"] = *attention_;
    return scaling;
  }

  void require(const std::string& key, double value) const {
    if (fields_.number(key).value_or(value) != value) {
      fields_.fail(key, "is not " + json(value).dump() + ", which is not supported here");
    }
  }

  /// Converters and readers disagree on whether it replaces YaRN's own factor or multiplies it.
  void refuse(const std::string& key) const {
    if (fields_.has(key)) fields_.fail(key, "is set, which is not supported");
  }

  const GgufFields& fields_;
  std::optional<std::string_view> type_;
  std::string factor_key_;
  std::optional<double> factor_;  // also by its older name
  std::optional<int64_t> original_;
  std::string attention_key_;
  std::optional<double> attention_;
  std::string type_key_;
  json betas_ = json::object();
};

}  // namespace

void add_gguf_rope(ArchitectureKeys& keys, json& config) {
  add_rotary_share(keys, config);
  const json scaling = ScalingReader(keys).read(config);
  if (!scaling.is_null()) config["rope_scaling"] = scaling;
}

}  // namespace anyslot
