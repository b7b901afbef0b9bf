#include "model/gguf/gguf_config.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>

#include "model/config_object.h"
#include "model/gguf/gguf_architecture.h"
#include "model/gguf/gguf_keys.h"
#include "model/gguf/gguf_rope.h"

namespace anyslot {

namespace {

using nlohmann::json;

enum class Kind : uint8_t { kInteger, kNumber };
enum class Need : uint8_t { kOptional, kRequired };

/// A key, without the architecture's name, and the field of config.json that says the same.
struct Field {
  std::string_view key;
  const char* field;
  Kind kind;
  Need need;
};

constexpr Field kFields[] = {
    {"context_length", "max_position_embeddings", Kind::kInteger, Need::kRequired},
    {"embedding_length", "hidden_size", Kind::kInteger, Need::kRequired},
    {"block_count", "num_hidden_layers", Kind::kInteger, Need::kRequired},
    {"feed_forward_length", "intermediate_size", Kind::kInteger, Need::kRequired},
    {"attention.head_count", "num_attention_heads", Kind::kInteger, Need::kRequired},
    {"attention.head_count_kv", "num_key_value_heads", Kind::kInteger, Need::kOptional},
    {"attention.key_length", "head_dim", Kind::kInteger, Need::kOptional},
    {"attention.layer_norm_rms_epsilon", "rms_norm_eps", Kind::kNumber, Need::kRequired},
    {"rope.freq_base", "rope_theta", Kind::kNumber, Need::kOptional},
};

constexpr Field kMultipliers[] = {
    {"attention.scale", "attention_multiplier", Kind::kNumber, Need::kRequired},
    {"embedding_scale", "embedding_multiplier", Kind::kNumber, Need::kRequired},
    {"residual_scale", "residual_multiplier", Kind::kNumber, Need::kRequired},
    {"logit_scale", "logits_scaling", Kind::kNumber, Need::kRequired},
};

constexpr Field kGemmaFields[] = {
    {"attn_logit_softcapping", "attn_logit_softcapping", Kind::kNumber, Need::kOptional},
    {"final_logit_softcapping", "final_logit_softcapping", Kind::kNumber, Need::kOptional},
    {"attention.sliding_window_pattern", "sliding_window_pattern", Kind::kInteger, Need::kOptional},
    {"rope.freq_base_swa", "rope_local_base_freq", Kind::kNumber, Need::kOptional},
};

/// Keys of things that no family, or none of the others, has, and the value that says so.
struct Absent {
  std::string_view key;
  std::variant<bool, double> value;
};

constexpr Absent kAbsent[] = {
    {"expert_count", 0.0},
    {"expert_used_count", 0.0},
    {"use_parallel_residual", false},
    {"attention.causal", true},
    {"attention.max_alibi_bias", 0.0},
    {"attention.clamp_kqv", 0.0},
    {"nextn_predict_layers", 0.0},
};

constexpr Absent kAbsentButInGemma[] = {
    {"attn_logit_softcapping", 0.0},
    {"final_logit_softcapping", 0.0},
};

/// Keys without effect: of how the file came about, or of norms that these families do not have.
constexpr std::string_view kIgnored[] = {"tensor_data_layout", "attention.layer_norm_epsilon",
                                         "rope.scaling.finetuned"};

class ConfigBuilder {
 public:
  ConfigBuilder(const GgufFile& file, const GgufArchitecture& architecture, Status& status)
      : architecture_(architecture), fields_(file, status), keys_(fields_, architecture.name) {}

  json build() {
    config_ = json::object();
    for (const Field& field : kFields) add(field);
    if (architecture_.has_multipliers) {
      for (const Field& field : kMultipliers) add(field);
    }
    add_head_width();
    if (architecture_.is_gemma) {
      add_gemma();
    } else {
      for (const Absent& absent : kAbsentButInGemma) check_absent(absent);
    }
    add_vocabulary();
    add_window();
    add_gguf_rope(keys_, config_);
    add_what_tensors_tell();
    add_ends();
    for (const Absent& absent : kAbsent) check_absent(absent);
    for (const std::string_view key : kIgnored) keys_.name(key);
    keys_.refuse_others();
    return config_;
  }

 private:
  void add(const Field& field) {
    const std::string key = keys_.name(field.key);
    if (!fields_.has(key)) {
      if (field.need == Need::kRequired) fields_.fail(key, "is missing");
      return;
    }
    if (field.kind == Kind::kNumber) {
      config_[field.field] = fields_.number(key).value_or(0.0);
    } else {
      config_[field.field] = keys_.same_in_all_layers(field.key);
    }
  }

  void add_head_width() {
    const auto key_length = fields_.integer(keys_.name("attention.key_length"));
    const std::string value_key = keys_.name("attention.value_length");
    const auto value_length = fields_.integer(value_key);
    if (!value_length) return;
    if (!key_length || *key_length != *value_length) {
      fields_.fail(value_key, "differs from " + keys_.name("attention.key_length") +
                                  "; heads must be as wide in V as in K");
    }
  }

  /// Files do not say by the root of what scores are divided. It is the width of a head in all
  /// models but those of 27 billion parameters, which are known by their number of layers
  /// (github.com/ggml-org/llama.cpp, src/models/gemma2.cpp and gemma3.cpp).
  void add_gemma() {
    for (const Field& field : kGemmaFields) add(field);
    const int64_t layers_of_27b = architecture_.name == "gemma2" ? 46 : 62;
    const int64_t num_heads = config_.value("num_attention_heads", int64_t{0});
    if (num_heads <= 0) return;
    const int64_t share = config_.value("hidden_size", int64_t{0}) / num_heads;
    const bool is_27b = config_.value("num_hidden_layers", int64_t{0}) == layers_of_27b;
    config_["query_pre_attn_scalar"] = is_27b ? share : config_.value("head_dim", share);
  }

  /// The embedding is the vocabulary: not every file has the key.
  void add_vocabulary() {
    const std::string key = keys_.name("vocab_size");
    const GgufTensor* embedding = fields_.file().find_tensor("token_embd.weight");
    if (embedding == nullptr) {
      fields_.fail(
          failed_precondition(fields_.file().path() + ": no tensor \"token_embd.weight\""));
      return;
    }
    config_["vocab_size"] = embedding->shape.front();
    const int64_t said = fields_.integer(key).value_or(embedding->shape.front());
    if (said != embedding->shape.front()) {
      fields_.fail(key, "is " + std::to_string(said) + ", but the embedding has " +
                            std::to_string(embedding->shape.front()) + " rows");
    }
  }

  /// 0 is none.
  void add_window() {
    const std::string key = keys_.name("attention.sliding_window");
    const int64_t window = fields_.integer(key).value_or(0);
    config_["architectures"] =
        json::array({window == 0 ? architecture_.family : architecture_.windowed});
    if (window == 0) return;
    config_["sliding_window"] = window;
    if (architecture_.windowed.empty()) {
      fields_.fail(key, "is set; windows are not supported in files of this architecture");
    }
  }

  void add_what_tensors_tell() {
    const auto has = [&](std::string_view name) {
      return fields_.file().find_tensor(name) != nullptr;
    };
    config_["tie_word_embeddings"] = !has("output.weight");
    config_["attention_bias"] = has("blk.0.attn_q.bias") || has("blk.0.attn_output.bias");
    config_["mlp_bias"] = has("blk.0.ffn_down.bias");
  }

  void add_ends() {
    std::set<int64_t> ids;
    for (const std::string_view end : {"eos", "eot", "eom"}) {
      const auto id = fields_.integer("tokenizer.ggml." + std::string(end) + "_token_id");
      if (id) ids.insert(*id);
    }
    if (!ids.empty()) config_["eos_token_id"] = ids;
  }

  void check_absent(const Absent& absent) {
    const std::string key = keys_.name(absent.key);
    if (!fields_.has(key)) return;
    const bool as_expected = std::holds_alternative<bool>(absent.value)
                                 ? fields_.boolean(key) == std::get<bool>(absent.value)
                                 : fields_.number(key) == std::get<double>(absent.value);
    if (!as_expected) fields_.fail(key, "asks for something that is not supported");
  }

  const GgufArchitecture& architecture_;
  GgufFields fields_;
  ArchitectureKeys keys_;
  json config_;
};

}  // namespace

Expected<ModelConfig> gguf_config(const GgufFile& file, int64_t max_model_len) {
  const Expected<const GgufArchitecture*> architecture = gguf_architecture(file);
  if (!architecture) return architecture.status();
  Status status;
  const json config = ConfigBuilder(file, **architecture, status).build();
  if (!status) return status;
  return read_config_object(config, file.path() + ": its metadata as config.json", max_model_len);
}

Expected<ConfigOutline> gguf_config_outline(const GgufFile& file) {
  const Expected<const GgufArchitecture*> known = gguf_architecture(file);
  Status ignored;
  const GgufFields fields(file, ignored);
  const auto name = fields.text("general.architecture");
  if (!name) return known.status();
  GgufArchitecture architecture{.name = *name, .family = *name, .windowed = *name};
  if (known) architecture = **known;
  Expected<ConfigOutline> outline =
      read_config_outline(ConfigBuilder(file, architecture, ignored).build(), file.path());
  if (!outline) return outline;
  const std::string prefix = std::string(*name) + ".";
  outline->num_experts = fields.integer(prefix + "expert_count").value_or(0);
  outline->experts_per_token = fields.integer(prefix + "expert_used_count").value_or(0);
  return outline;
}

}  // namespace anyslot
