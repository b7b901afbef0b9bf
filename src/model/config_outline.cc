#include "model/config_outline.h"

#include <initializer_list>
#include <limits>

#include "model/config_object.h"
#include "model/config_reader.h"
#include "model/json_file.h"

namespace anyslot {

namespace {

/// The first of these fields that is a number above 0, or 0.
int64_t number_at(const nlohmann::json& object, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    Status ignored;
    const int64_t value =
        ConfigReader(object, "", ignored).integer(key, 0, std::numeric_limits<int64_t>::max(), 0);
    if (value > 0) return value;
  }
  return 0;
}

}  // namespace

Expected<ConfigOutline> read_config_outline(const nlohmann::json& object,
                                            const std::string& where) {
  const Expected<std::string> architecture = read_architecture(object, where);
  if (!architecture) return architecture.status();
  // Models of images and text have the language model's fields apart.
  const auto part = object.find("text_config");
  const nlohmann::json& text = part != object.end() && part->is_object() ? *part : object;
  ConfigOutline outline;
  outline.architecture = *architecture;
  outline.num_layers = number_at(text, {"num_hidden_layers"});
  outline.num_heads = number_at(text, {"num_attention_heads"});
  outline.num_kv_heads = number_at(text, {"num_key_value_heads", "num_attention_heads"});
  outline.hidden_size = number_at(text, {"hidden_size"});
  outline.head_dim = number_at(text, {"head_dim"});
  if (outline.head_dim == 0 && outline.num_heads > 0) {
    outline.head_dim = outline.hidden_size / outline.num_heads;
  }
  outline.vocab_size = number_at(text, {"vocab_size"});
  outline.max_position_embeddings = number_at(text, {"max_position_embeddings"});
  outline.num_experts = number_at(text, {"num_local_experts", "num_experts", "n_routed_experts"});
  outline.experts_per_token = number_at(text, {"num_experts_per_tok"});
  return outline;
}

Expected<ConfigOutline> load_config_outline(const std::string& model_dir) {
  const std::string path = model_dir + "/config.json";
  const Expected<nlohmann::json> json = read_json_file(path);
  if (!json) return json.status();
  return read_config_outline(*json, path);
}

}  // namespace anyslot
