#include "inspect_report.h"

#include <fmt/format.h>

#include <vector>

#include "sizes.h"
#include "table.h"

namespace anyslot::cli {
namespace {

/// The names of facts and what they are; what the files do not say is left out.
class Facts {
 public:
  void add(const std::string& name, const std::string& value) {
    table_.add_row({name, one_line(value)});
  }

  void add_count(const std::string& name, int64_t count, const std::string& unit = "") {
    if (count > 0) add(name, count_text(count) + unit);
  }

  /// A row each, of which only the first has the name.
  void add_all(const std::string& name, const std::vector<std::string>& values) {
    for (const std::string& value : values) add(&value == &values.front() ? name : "", value);
  }

  std::string text() const { return table_.text(); }

 private:
  Table table_{{"what", "value"}};
};

/// " in 3 of 4 layers", or nothing when it is all of them.
std::string layers_text(int64_t num_layers, int64_t of) {
  return num_layers == of ? "" : fmt::format(" in {} of {}", num_layers, plural_text(of, "layer"));
}

std::string rope_text(const RopeReport& rope, const ModelSizes& sizes) {
  if (rope.type == "none") return "none" + layers_text(rope.num_layers, sizes.num_layers);
  std::string text = rope.type;
  if (rope.type == "longrope") text += ", a factor per pair of dimensions";
  if (rope.factor) text += fmt::format(", factor {}", *rope.factor);
  if (rope.original_context) {
    text += fmt::format(" of {}", plural_text(*rope.original_context, "token"));
  }
  text += fmt::format(", theta {}", rope.theta);
  if (rope.rotary_dim != sizes.head_dim) {
    text += fmt::format(", {} of {} dimensions of a head", rope.rotary_dim, sizes.head_dim);
  }
  return text + layers_text(rope.num_layers, sizes.num_layers);
}

std::string window_text(const WindowReport& window, int64_t num_layers) {
  const std::string seen = window.window == 0 ? "none" : plural_text(window.window, "token");
  return seen + layers_text(window.num_layers, num_layers);
}

std::string chat_template_text(const std::optional<ChatTemplateReport>& chat) {
  if (!chat) return "none";
  if (!chat->rendered) return "there is one; this build renders none (scripts/fetch-minja.sh)";
  return chat->takes_documents ? "takes documents" : "takes no documents";
}

std::string stop_text(const std::vector<StopToken>& stops) {
  std::string text;
  for (const StopToken& stop : stops) {
    if (!text.empty()) text += ", ";
    text +=
        stop.name.empty() ? fmt::format("{}", stop.id) : fmt::format("{} ({})", stop.name, stop.id);
  }
  return text.empty() ? "none" : text;
}

std::string names_text(const std::vector<std::string>& names) {
  constexpr size_t kShown = 3;
  std::string text = count_text(static_cast<int64_t>(names.size())) + ": ";
  for (size_t i = 0; i < names.size() && i < kShown; ++i) text += (i > 0 ? ", " : "") + names[i];
  return names.size() > kShown ? text + ", ..." : text;
}

void add_sizes(const ModelReport& report, Facts& facts) {
  const ModelSizes& sizes = report.sizes;
  facts.add_count("parameters", report.num_parameters);
  facts.add_count("layers", sizes.num_layers);
  if (sizes.num_heads > 0) {
    facts.add("heads", fmt::format("{} of {} dimensions, {} of keys and values", sizes.num_heads,
                                   sizes.head_dim, sizes.num_kv_heads));
  }
  facts.add_count("hidden size", sizes.hidden_size);
  facts.add_count("vocabulary", sizes.vocab_size);
  facts.add_count("context", sizes.max_position_embeddings, " tokens");
  if (report.max_model_len != sizes.max_position_embeddings) {
    facts.add_count("--max-model-len", report.max_model_len, " tokens");
  }
  if (sizes.num_experts > 0) {
    const int64_t layers = report.has_config ? report.num_expert_layers : sizes.num_layers;
    facts.add("experts",
              fmt::format("{}, {} per token", sizes.num_experts, sizes.experts_per_token) +
                  layers_text(layers, sizes.num_layers));
  }
}

void add_layers(const ModelReport& report, Facts& facts) {
  if (!report.has_config) return;
  if (report.sizes.num_experts == 0) facts.add("experts", "none");
  std::vector<std::string> windows;
  for (const WindowReport& window : report.windows) {
    windows.push_back(window_text(window, report.sizes.num_layers));
  }
  facts.add_all("window", windows);
  std::vector<std::string> ropes;
  for (const RopeReport& rope : report.ropes) ropes.push_back(rope_text(rope, report.sizes));
  facts.add_all("RoPE", ropes);
  facts.add("embeddings", report.tied_embeddings ? "tied" : "not tied");
}

void add_texts(const ModelReport& report, Facts& facts) {
  if (report.tokenizer) {
    facts.add("tokenizer", fmt::format("byte-pair encoding over {}, {}",
                                       report.tokenizer->byte_level ? "bytes" : "characters",
                                       plural_text(report.tokenizer->vocab_size, "token")));
  } else {
    facts.add("tokenizer", "none: requests give token ids");
  }
  facts.add("RAG template", report.has_rag_template ? "rag_template.json" : "none");
  facts.add("chat template", chat_template_text(report.chat_template));
  facts.add("block-trained",
            report.block_trained ? "yes" : "no: lazy, block and mepic may cost answers");
  facts.add("default method", std::string(method_name(report.default_method)));
  if (report.has_config || !report.stop_tokens.empty()) {
    facts.add("stop tokens", stop_text(report.stop_tokens));
  }
}

std::string facts_text(const ModelReport& report) {
  Facts facts;
  facts.add("model", report.name);
  facts.add("format", report.format.empty() ? "no weights" : report.format);
  facts.add("architecture", report.architecture);
  add_sizes(report, facts);
  add_layers(report, facts);
  add_texts(report, facts);
  if (report.has_config) {
    facts.add("GPU", report.gpu.ok() ? "can serve it" : report.gpu.message());
  }
  if (!report.missing_tensors.empty()) {
    facts.add("missing tensors", names_text(report.missing_tensors));
  }
  if (!report.unused_tensors.empty()) {
    facts.add("unused tensors", names_text(report.unused_tensors));
  }
  return facts.text();
}

std::string tensors_text(const ModelReport& report) {
  if (report.tensors.empty()) return "";
  Table table({"type", ">tensors", ">numbers", ">in the files"});
  for (const TensorTypeReport& type : report.tensors) {
    table.add_row({one_line(type.type), count_text(type.num_tensors), count_text(type.num_elements),
                   format_size(type.bytes)});
  }
  return "\n" + table.text();
}

std::string memory_text(const ModelReport& report, const InspectOptions& options) {
  if (report.memory.empty()) return "";
  Table table({"--dtype", "--weights", ">weights in memory", ">KV per token", ">documents"});
  for (const MemoryReport& memory : report.memory) {
    table.add_row({std::string(compute_type_name(memory.dtype)),
                   std::string(weight_type_name(memory.weights)), format_size(memory.weight_bytes),
                   format_size(memory.kv_bytes_per_token), count_text(memory.documents)});
  }
  const bool as_dtype = options.kv_cache_dtype == KvCacheType::kComputeType;
  return fmt::format(
      "\n{}Documents of {} that a KV cache of {}{} holds.\n", table.text(),
      plural_text(options.document_tokens, "token"), format_size(options.kv_cache_bytes),
      as_dtype ? "" : fmt::format(", {},", kv_cache_type_name(options.kv_cache_dtype)));
}

std::string verdict_text(const ModelReport& report) {
  if (report.problems.empty()) return "\nAnySlot can serve this model.\n";
  std::string text = "\nAnySlot cannot serve this model:\n";
  for (const Status& problem : report.problems) text += "- " + one_line(problem.message()) + "\n";
  return text;
}

}  // namespace

std::string inspect_text(const ModelReport& report, const InspectOptions& options) {
  return facts_text(report) + tensors_text(report) + memory_text(report, options) +
         verdict_text(report);
}

}  // namespace anyslot::cli
