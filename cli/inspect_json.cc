#include <nlohmann/json.hpp>

#include "inspect_report.h"

namespace anyslot::cli {
namespace {

using Json = nlohmann::ordered_json;

/// What the files do not say is null.
Json known(int64_t number) { return number > 0 ? Json(number) : Json(); }

template <typename T, typename Describe>
Json list_of(const std::vector<T>& values, const Describe& describe) {
  Json list = Json::array();
  for (const T& value : values) list.push_back(describe(value));
  return list;
}

Json window_json(const WindowReport& window) {
  return {{"tokens", known(window.window)}, {"layers", window.num_layers}};
}

Json rope_json(const RopeReport& rope) {
  if (rope.type == "none") return {{"type", rope.type}, {"layers", rope.num_layers}};
  return {{"type", rope.type},
          {"theta", rope.theta},
          {"rotary_dim", rope.rotary_dim},
          {"factor", rope.factor ? Json(*rope.factor) : Json()},
          {"original_context", known(rope.original_context.value_or(0))},
          {"layers", rope.num_layers}};
}

Json tensor_type_json(const TensorTypeReport& type) {
  return {{"type", type.type},
          {"tensors", type.num_tensors},
          {"elements", type.num_elements},
          {"bytes", type.bytes}};
}

Json memory_json(const MemoryReport& memory) {
  return {{"dtype", compute_type_name(memory.dtype)},
          {"weights", weight_type_name(memory.weights)},
          {"weight_bytes", memory.weight_bytes},
          {"kv_bytes_per_token", memory.kv_bytes_per_token},
          {"documents", memory.documents}};
}

Json stop_json(const StopToken& stop) {
  return {{"id", stop.id}, {"name", stop.name.empty() ? Json() : Json(stop.name)}};
}

void add_sizes(const ModelReport& report, Json& object) {
  const ModelSizes& sizes = report.sizes;
  object["parameters"] = known(report.num_parameters);
  object["layers"] = known(sizes.num_layers);
  object["heads"] = known(sizes.num_heads);
  object["kv_heads"] = known(sizes.num_kv_heads);
  object["head_dim"] = known(sizes.head_dim);
  object["hidden_size"] = known(sizes.hidden_size);
  object["vocab_size"] = known(sizes.vocab_size);
  object["context"] = known(sizes.max_position_embeddings);
  object["max_model_len"] = known(report.max_model_len);
  object["experts"] = sizes.num_experts == 0 ? Json()
                                             : Json({{"experts", sizes.num_experts},
                                                     {"per_token", known(sizes.experts_per_token)},
                                                     {"layers", known(report.num_expert_layers)}});
}

void add_layers(const ModelReport& report, Json& object) {
  object["windows"] = list_of(report.windows, window_json);
  object["rope"] = list_of(report.ropes, rope_json);
  object["tied_embeddings"] = report.has_config ? Json(report.tied_embeddings) : Json();
  object["tensors"] = list_of(report.tensors, tensor_type_json);
  object["missing_tensors"] = report.missing_tensors;
  object["unused_tensors"] = report.unused_tensors;
}

void add_texts(const ModelReport& report, Json& object) {
  const auto& tokenizer = report.tokenizer;
  object["tokenizer"] = !tokenizer ? Json()
                                   : Json({{"unit", tokenizer->byte_level ? "byte" : "character"},
                                           {"tokens", tokenizer->vocab_size}});
  object["rag_template"] = report.has_rag_template;
  const auto& chat = report.chat_template;
  object["chat_template"] =
      !chat ? Json()
            : Json({{"rendered", chat->rendered},
                    {"takes_documents", chat->rendered ? Json(chat->takes_documents) : Json()}});
  object["block_trained"] = report.block_trained;
  object["default_method"] = method_name(report.default_method);
  object["stop_tokens"] = list_of(report.stop_tokens, stop_json);
}

}  // namespace

std::string inspect_json(const ModelReport& report, const InspectOptions& options) {
  Json object = {{"model", report.name},
                 {"supported", report.problems.empty()},
                 {"problems", list_of(report.problems,
                                      [](const Status& problem) { return problem.message(); })},
                 {"format", report.format.empty() ? Json() : Json(report.format)},
                 {"architecture", report.architecture}};
  add_sizes(report, object);
  add_layers(report, object);
  object["kv_cache_bytes"] = options.kv_cache_bytes;
  object["kv_cache_dtype"] = kv_cache_type_name(options.kv_cache_dtype);
  object["document_tokens"] = options.document_tokens;
  object["memory"] = list_of(report.memory, memory_json);
  add_texts(report, object);
  object["gpu"] = !report.has_config
                      ? Json()
                      : Json({{"served", report.gpu.ok()},
                              {"problem", report.gpu.ok() ? Json() : Json(report.gpu.message())}});
  return object.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace anyslot::cli
