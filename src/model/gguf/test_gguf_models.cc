#include "model/gguf/test_gguf_models.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <numbers>
#include <span>
#include <stdexcept>

#include "base/dtype.h"
#include "model/safetensors.h"

namespace anyslot::testing_gguf {

namespace {

using nlohmann::json;

json read_json(const std::string& path) {
  std::ifstream file(path);
  return json::parse(file);
}

// Encoding numbers.

std::string encode_block(std::span<const float> block, uint32_t type) {
  const bool eight_bits = type == kQ8_0;
  float largest = 0;  // of absolute values, with its sign
  for (const float value : block) {
    if (std::abs(value) > std::abs(largest)) largest = value;
  }
  const float d = fp16_to_float(float_to_fp16(largest / (eight_bits ? 127.0F : -8.0F)));
  std::vector<int> whole;
  for (const float value : block) {
    const auto rounded = d == 0 ? 0 : static_cast<int>(std::lround(value / d));
    whole.push_back(std::clamp(rounded, eight_bits ? -127 : -8, eight_bits ? 127 : 7));
  }
  std::string bytes = raw(float_to_fp16(d));
  if (eight_bits) {
    for (const int value : whole) bytes += static_cast<char>(value);
    return bytes;
  }
  for (size_t i = 0; i < 16; ++i) {
    bytes += static_cast<char>((whole[i] + 8) | (whole[i + 16] + 8) << 4);
  }
  return bytes;
}

std::string encode(std::span<const float> values, uint32_t type) {
  std::string bytes;
  if (type == kF32) return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
  if (type == kF16) {
    for (const float value : values) bytes += raw(float_to_fp16(value));
  } else if (type == kBF16) {
    for (const float value : values) bytes += raw(float_to_bf16(value));
  } else {
    for (size_t i = 0; i < values.size(); i += 32)
      bytes += encode_block(values.subspan(i, 32), type);
  }
  return bytes;
}

// Tensors.

struct Family {
  const char* gguf_name;
  bool permuted = false;
  bool post_norms = false;  // norms behind attention and MLP
  bool is_gemma = false;
};

const std::map<std::string, Family> kFamilies = {
    {"Gemma2ForCausalLM", {"gemma2", false, true, true}},
    {"Gemma3ForCausalLM", {"gemma3", false, true, true}},
    {"GraniteForCausalLM", {"granite", true}},
    {"LlamaForCausalLM", {"llama", true}},
    {"MistralForCausalLM", {"llama", true}},
    {"Olmo2ForCausalLM", {"olmo2", false, true}},
    {"Phi3ForCausalLM", {"phi3"}},
    {"Qwen2ForCausalLM", {"qwen2"}},
    {"Qwen3ForCausalLM", {"qwen3"}},
    {"SmolLM3ForCausalLM", {"smollm3", true}},
};

std::string gguf_name_of(std::string name, const Family& family) {
  const std::pair<std::string, std::string> kParts[] = {
      {"model.embed_tokens", "token_embd"},
      {"model.norm", "output_norm"},
      {"lm_head", "output"},
      {"model.layers.", "blk."},
      {"input_layernorm", "attn_norm"},
      {"post_attention_layernorm", family.post_norms ? "post_attention_norm" : "ffn_norm"},
      {"pre_feedforward_layernorm", "ffn_norm"},
      {"post_feedforward_layernorm", "post_ffw_norm"},
      {"self_attn.q_proj", "attn_q"},
      {"self_attn.k_proj", "attn_k"},
      {"self_attn.v_proj", "attn_v"},
      {"self_attn.qkv_proj", "attn_qkv"},
      {"self_attn.o_proj", "attn_output"},
      {"self_attn.q_norm", "attn_q_norm"},
      {"self_attn.k_norm", "attn_k_norm"},
      {"mlp.gate_up_proj", "ffn_up"},
      {"mlp.gate_proj", "ffn_gate"},
      {"mlp.up_proj", "ffn_up"},
      {"mlp.down_proj", "ffn_down"},
  };
  for (const auto& [theirs, ours] : kParts) {
    if (const size_t at = name.find(theirs); at != std::string::npos) {
      name.replace(at, theirs.size(), ours);
    }
  }
  return name;
}

std::vector<float> values_of(TensorStore& store, const std::string& name) {
  const Expected<TensorView> view = store.get(name, store.find(name)->shape);
  if (!view) throw std::runtime_error(view.status().message());
  std::vector<float> values(static_cast<size_t>(view->rows * view->cols));
  for (size_t i = 0; i < values.size(); ++i) values[i] = load_element(view->data, view->dtype, i);
  return values;
}

/// Of each head the halves are laid side by side: row i of the first, row i of the second, and so
/// on. `width`: numbers in a row.
std::vector<float> interleave_halves(const std::vector<float>& rows, size_t head_dim,
                                     size_t width) {
  std::vector<float> result;
  const size_t half = head_dim / 2;
  for (size_t head = 0; head * head_dim * width < rows.size(); ++head) {
    for (size_t i = 0; i < half; ++i) {
      for (const size_t row : {head * head_dim + i, head * head_dim + half + i}) {
        result.insert(result.end(), rows.begin() + static_cast<std::ptrdiff_t>(row * width),
                      rows.begin() + static_cast<std::ptrdiff_t>((row + 1) * width));
      }
    }
  }
  return result;
}

void add_tensors(const std::string& folder, const Family& family, size_t head_dim,
                 uint32_t matrix_type, GgufWriter& file) {
  auto store = TensorStore::open(folder);
  if (!store) throw std::runtime_error(store.status().message());
  for (const std::string& name : store->names()) {
    const std::vector<int64_t>& shape = store->find(name)->shape;
    const bool is_matrix = shape.size() > 1;
    std::vector<float> values = values_of(*store, name);
    const bool turned =
        name.find(".q_proj.") != std::string::npos || name.find(".k_proj.") != std::string::npos;
    if (family.permuted && turned) {
      values = interleave_halves(values, head_dim, is_matrix ? static_cast<size_t>(shape[1]) : 1);
    }
    if (family.is_gemma && name.ends_with("norm.weight")) {
      for (float& value : values) value += 1;
    }
    const uint32_t type = is_matrix ? matrix_type : kF32;
    file.add_tensor(gguf_name_of(name, family), shape, type, encode(values, type));
  }
}

// Metadata.

/// The factors of Llama 3.1, which a GGUF file holds as a tensor.
std::vector<float> llama3_factors(const json& rope, size_t head_dim) {
  const double original = rope["original_max_position_embeddings"];
  const double low = rope["low_freq_factor"];
  const double high = rope["high_freq_factor"];
  const double factor = rope["factor"];
  std::vector<float> factors;
  for (size_t i = 0; i < head_dim; i += 2) {
    const double frequency = std::pow(rope["rope_theta"].get<double>(),
                                      -static_cast<double>(i) / static_cast<double>(head_dim));
    const double turns = original * frequency / (2 * std::numbers::pi);
    const double smooth = std::clamp((turns - low) / (high - low), 0.0, 1.0);
    factors.push_back(static_cast<float>(1 / ((1 - smooth) / factor + smooth)));
  }
  return factors;
}

void add_rope(const json& config, const std::string& prefix, size_t head_dim, GgufWriter& file) {
  json rope = config.contains("rope_parameters")
                  ? config["rope_parameters"]
                  : json{{"rope_theta", config["rope_theta"]}, {"rope_type", "default"}};
  // That of layers with a window is not written.
  if (rope.contains("full_attention")) rope = json(rope["full_attention"]);
  const std::string type = rope["rope_type"];
  file.add_f32(prefix + "rope.freq_base", rope["rope_theta"]);
  const double share = config.value("partial_rotary_factor", 1.0);
  file.add_u32(prefix + "rope.dimension_count",
               static_cast<uint32_t>(static_cast<double>(head_dim) * share));
  if (type == "llama3") {
    const std::vector<float> factors = llama3_factors(rope, head_dim);
    file.add_tensor("rope_freqs.weight", {static_cast<int64_t>(factors.size())}, kF32,
                    encode(factors, kF32));
  } else if (type != "default") {
    file.add_text(prefix + "rope.scaling.type", type);
    file.add_f32(prefix + "rope.scaling.factor", rope["factor"]);
    if (type == "yarn") {
      file.add_u32(prefix + "rope.scaling.original_context_length",
                   rope["original_max_position_embeddings"]);
    }
  }
}

void add_gemma(const json& config, const std::string& prefix, GgufWriter& file) {
  for (const std::string cap : {"attn_logit_softcapping", "final_logit_softcapping"}) {
    if (!config[cap].is_null()) file.add_f32(prefix + cap, config[cap]);
  }
  const json& types = config["layer_types"];
  const auto full = std::ranges::find(types, json("full_attention"));
  if (prefix == "gemma3." && full != types.end()) {
    file.add_u32(prefix + "attention.sliding_window_pattern",
                 static_cast<uint32_t>(full - types.begin()) + 1);
  }
}

void add_config(const json& config, const std::string& family, size_t head_dim, GgufWriter& file) {
  const std::string prefix = family + ".";
  const auto add = [&](const char* key, const char* field) {
    file.add_u32(prefix + key, config[field]);
  };
  file.add_text("general.architecture", family);
  add("context_length", "max_position_embeddings");
  add("embedding_length", "hidden_size");
  add("block_count", "num_hidden_layers");
  add("feed_forward_length", "intermediate_size");
  add("attention.head_count", "num_attention_heads");
  add("attention.head_count_kv", "num_key_value_heads");
  file.add_f32(prefix + "attention.layer_norm_rms_epsilon", config["rms_norm_eps"]);
  if (config.contains("head_dim")) {
    add("attention.key_length", "head_dim");
    add("attention.value_length", "head_dim");
  }
  if (family == "llama") add("vocab_size", "vocab_size");
  if (const json window = config.value("sliding_window", json()); !window.is_null()) {
    file.add_u32(prefix + "attention.sliding_window", window);
  } else if (family == "phi3") {
    file.add_u32(prefix + "attention.sliding_window", 0);
  }
  if (family == "granite") {
    file.add_f32(prefix + "attention.scale", config["attention_multiplier"]);
    file.add_f32(prefix + "embedding_scale", config["embedding_multiplier"]);
    file.add_f32(prefix + "residual_scale", config["residual_multiplier"]);
    file.add_f32(prefix + "logit_scale", config["logits_scaling"]);
  }
  if (kFamilies.at(config["architectures"][0]).is_gemma) add_gemma(config, prefix, file);
  add_rope(config, prefix, head_dim, file);
  file.add_u32("tokenizer.ggml.bos_token_id", config["bos_token_id"]);
  file.add_u32("tokenizer.ggml.eos_token_id", config["eos_token_id"]);
}

std::pair<std::string, std::string> names_of(const json& merge) {
  if (merge.is_array()) return {merge[0], merge[1]};
  const std::string text = merge;
  const size_t space = text.find(' ');
  return {text.substr(0, space), text.substr(space + 1)};
}

/// Of SentencePiece: what is merged earlier has a higher score, and what nothing makes the lowest.
std::vector<float> scores_of(const json& model, const std::vector<std::string>& tokens) {
  std::map<std::string, float> of_results;
  for (const json& merge : model["merges"]) {
    const auto [left, right] = names_of(merge);
    of_results.emplace(left + right, -static_cast<float>(of_results.size()));
  }
  std::vector<float> scores;
  for (const std::string& token : tokens) {
    const auto score = of_results.find(token);
    scores.push_back(score == of_results.end() ? -1e6F : score->second);
  }
  return scores;
}

void add_model(const json& model, const std::vector<std::string>& tokens, GgufWriter& file) {
  if (model.value("byte_fallback", false)) {
    file.add_text("tokenizer.ggml.model", "llama");
    const std::vector<float> scores = scores_of(model, tokens);
    file.add_list("tokenizer.ggml.scores", GgufValueType::kFloat32, scores.size(),
                  encode(scores, kF32));
    return;
  }
  std::vector<std::string> merges;
  for (const json& merge : model["merges"]) {
    const auto [left, right] = names_of(merge);
    merges.push_back(left + " " + right);
  }
  file.add_text("tokenizer.ggml.model", "gpt2");
  file.add_text("tokenizer.ggml.pre", "llama-bpe");
  file.add_texts("tokenizer.ggml.merges", merges);
}

void add_tokenizer(const json& tokenizer, GgufWriter& file) {
  const json& model = tokenizer["model"];
  std::vector<std::string> tokens;
  std::vector<int32_t> types;
  const auto set = [&](size_t id, const std::string& name, int32_t type) {
    if (id >= tokens.size()) {
      tokens.resize(id + 1);
      types.resize(id + 1, 5);
    }
    tokens[id] = name;
    types[id] = type;
  };
  for (const auto& [name, id] : model["vocab"].items())
    set(id, name, name.starts_with("<0x") ? 6 : 1);
  for (const json& added : tokenizer["added_tokens"]) {
    set(added["id"], added["content"], added["special"].get<bool>() ? 3 : 4);
  }
  file.add_texts("tokenizer.ggml.tokens", tokens);
  file.add_i32s("tokenizer.ggml.token_type", types);
  add_model(model, tokens, file);
}

}  // namespace

GgufWriter gguf_of_folder(const std::string& folder, uint32_t matrix_type) {
  const json config = read_json(folder + "/config.json");
  const Family& family = kFamilies.at(config["architectures"][0]);
  const size_t head_dim = config.value("head_dim", config["hidden_size"].get<size_t>() /
                                                       config["num_attention_heads"].get<size_t>());
  GgufWriter file;
  add_config(config, family.gguf_name, head_dim, file);
  if (std::filesystem::exists(folder + "/tokenizer.json")) {
    add_tokenizer(read_json(folder + "/tokenizer.json"), file);
  }
  add_tensors(folder, family, head_dim, matrix_type, file);
  return file;
}

}  // namespace anyslot::testing_gguf
