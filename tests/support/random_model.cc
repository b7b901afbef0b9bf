#include "support/random_model.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "model/safetensors_writer.h"

namespace anyslot::testing_support {

namespace {

class WeightFile {
 public:
  explicit WeightFile(uint64_t seed) : random_(seed) {}

  void add(const std::string& name, std::vector<int64_t> shape) {
    const bool is_norm = shape.size() == 1;
    int64_t count = 1;
    for (const int64_t dim : shape) count *= dim;
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values)
      value = is_norm ? 1.0F + 0.1F * normal_(random_) : 0.08F * normal_(random_);
    values_.push_back(std::move(values));
    names_.push_back(name);
    shapes_.push_back(std::move(shape));
  }

  std::string bytes() const {
    std::vector<NamedTensor> tensors;
    for (size_t i = 0; i < names_.size(); ++i)
      tensors.push_back({names_[i], shapes_[i], values_[i]});
    const Expected<std::string> header = safetensors_header(tensors);
    EXPECT_TRUE(header.ok()) << header.status().message();
    if (!header) return {};
    std::string bytes = *header;
    for (const std::vector<float>& values : values_) {
      bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
    }
    return bytes;
  }

 private:
  std::mt19937_64 random_;
  std::normal_distribution<float> normal_;
  std::vector<std::string> names_;
  std::vector<std::vector<int64_t>> shapes_;
  std::vector<std::vector<float>> values_;
};

std::string config_text(const RandomModel& model) {
  return fmt::format(
      R"({{"architectures": ["{}ForCausalLM"], "sliding_window": {}, "vocab_size": {}, "hidden_size": {},
"intermediate_size": {}, "num_hidden_layers": {}, "num_attention_heads": {}, "num_key_value_heads": {}, "head_dim": {},
"hidden_act": "silu", "max_position_embeddings": {}, "rms_norm_eps": 1e-05, "rope_theta": {}, "tie_word_embeddings": {}}})",
      model.window > 0 ? "Mistral" : "Llama",
      model.window > 0 ? std::to_string(model.window) : "null", model.vocab_size, model.hidden_size,
      model.intermediate_size, model.num_layers, model.num_heads, model.num_kv_heads,
      model.head_dim, model.max_position_embeddings, model.rope_theta, model.tie_word_embeddings);
}

}  // namespace

TemporaryModel::TemporaryModel(const RandomModel& model) {
  folder_.write("config.json", config_text(model));

  WeightFile weights(model.seed);
  const int64_t hidden = model.hidden_size;
  const int64_t q_size = int64_t{model.num_heads} * model.head_dim;
  const int64_t kv_size = int64_t{model.num_kv_heads} * model.head_dim;
  weights.add("model.embed_tokens.weight", {model.vocab_size, hidden});
  for (int layer = 0; layer < model.num_layers; ++layer) {
    const std::string prefix = fmt::format("model.layers.{}.", layer);
    weights.add(prefix + "input_layernorm.weight", {hidden});
    weights.add(prefix + "self_attn.q_proj.weight", {q_size, hidden});
    weights.add(prefix + "self_attn.k_proj.weight", {kv_size, hidden});
    weights.add(prefix + "self_attn.v_proj.weight", {kv_size, hidden});
    weights.add(prefix + "self_attn.o_proj.weight", {hidden, q_size});
    weights.add(prefix + "post_attention_layernorm.weight", {hidden});
    weights.add(prefix + "mlp.gate_proj.weight", {model.intermediate_size, hidden});
    weights.add(prefix + "mlp.up_proj.weight", {model.intermediate_size, hidden});
    weights.add(prefix + "mlp.down_proj.weight", {hidden, model.intermediate_size});
  }
  weights.add("model.norm.weight", {hidden});
  if (!model.tie_word_embeddings) weights.add("lm_head.weight", {model.vocab_size, hidden});
  folder_.write("model.safetensors", weights.bytes());
}

}  // namespace anyslot::testing_support
