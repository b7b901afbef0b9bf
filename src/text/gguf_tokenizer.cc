#include "text/gguf_tokenizer.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "text/json_fields.h"
#include "text/utf8.h"

namespace anyslot {

using nlohmann::json;

namespace {

// The expressions of the tokenizers that gave the names, as their tokenizer.json files have them.
constexpr std::string_view kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kGpt4o =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kTekken =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kEachDigit = R"(\p{N})";

/// A name of tokenizer.ggml.pre. The names and what goes with them: github.com/ggml-org/llama.cpp,
/// src/llama-vocab.cpp.
struct NamedPreTokenizer {
  std::string_view name;
  std::string_view split;      // empty: none
  bool gpt2_words = false;     // ByteLevel's own expression cuts what is left
  bool ignore_merges = false;  // a word that is a token as a whole stays whole
  bool adds_bos = false;       // where the file does not say it
};

constexpr NamedPreTokenizer kPreTokenizers[] = {
    {.name = "llama-bpe", .split = kLlama3, .ignore_merges = true, .adds_bos = true},
    {.name = "llama3", .split = kLlama3, .ignore_merges = true, .adds_bos = true},
    {.name = "llama-v3", .split = kLlama3, .ignore_merges = true, .adds_bos = true},
    {.name = "dbrx", .split = kLlama3},
    {.name = "qwen2", .split = kQwen2},
    {.name = "deepseek-r1-qwen", .split = kQwen2},
    {.name = "gpt-2", .split = {}, .gpt2_words = true},
    {.name = "olmo", .split = {}, .gpt2_words = true},
    {.name = "smollm", .split = kEachDigit, .gpt2_words = true},
    {.name = "refact", .split = kEachDigit, .gpt2_words = true},
    {.name = "starcoder", .split = kEachDigit, .gpt2_words = true},
    {.name = "gpt-4o", .split = kGpt4o},
    {.name = "tekken", .split = kTekken, .ignore_merges = true, .adds_bos = true},
};

/// tokenizer.ggml.token_type.
enum class TokenType : int64_t { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused };

class TokenizerJson {
 public:
  explicit TokenizerJson(const GgufTokenizer& source) : source_(source) {}

  Expected<json> build() {
    const NamedPreTokenizer* pre = find_pre_tokenizer();
    add_tokens();
    add_merges();
    if (status_.ok() && pre != nullptr) {
      file_["model"]["ignore_merges"] = pre->ignore_merges;
      add_pre_tokenizer(*pre);
      add_ends(source_.add_bos_token.value_or(pre->adds_bos));
    }
    if (!status_.ok()) return status_;
    return std::move(file_);
  }

 private:
  void fail(std::string_view key, const std::string& problem) {
    if (status_.ok()) {
      status_ = failed_precondition(source_.where + ": tokenizer.ggml." + std::string(key) + ": " +
                                    problem);
    }
  }

  const NamedPreTokenizer* find_pre_tokenizer() {
    if (source_.model != "gpt2") {
      fail("model", unsupported(source_.model, "gpt2, a byte-level BPE"));
      return nullptr;
    }
    std::string names;
    for (const NamedPreTokenizer& pre : kPreTokenizers) {
      if (pre.name == source_.pre) return &pre;
      if (!names.empty()) names += ", ";
      names += pre.name;
    }
    fail("pre", unsupported(source_.pre, names));
    return nullptr;
  }

  static std::string unsupported(std::string_view name, const std::string& supported) {
    if (name.empty()) return "this key is missing (supported: " + supported + ")";
    const bool printable = !find_invalid_utf8(name);
    return unsupported_type(printable ? std::string(name) : "?", supported);
  }

  void add_tokens() {
    if (source_.tokens.empty()) fail("tokens", "this key is missing");
    if (source_.token_type.size() != source_.tokens.size()) {
      fail("token_type", "has " + std::to_string(source_.token_type.size()) + " elements for " +
                             std::to_string(source_.tokens.size()) + " tokens");
    }
    for (size_t id = 0; id < source_.tokens.size() && status_.ok(); ++id) add_token(id);
  }

  void add_token(size_t id) {
    const std::string name(source_.tokens[id]);
    if (find_invalid_utf8(name)) return fail("tokens", at(id) + " is not valid UTF-8");
    switch (const int64_t type = source_.token_type[id]; static_cast<TokenType>(type)) {
      case TokenType::kNormal:
        if (!vocab_.emplace(name, id).second) fail("tokens", at(id) + " stands twice");
        return;
      case TokenType::kUnknown:
      case TokenType::kControl:
      case TokenType::kUserDefined: {
        const bool special = type != static_cast<int64_t>(TokenType::kUserDefined);
        added_.push_back(
            {{"id", id}, {"content", name}, {"special", special}, {"normalized", false}});
        return;
      }
      case TokenType::kUnused:  // fills a gap between ids: no text becomes it
        return;
    }
    fail("token_type",
         at(id) + " is " + std::to_string(source_.token_type[id]) + ", which is not supported");
  }

  void add_merges() {
    json merges = json::array();
    for (size_t i = 0; i < source_.merges.size() && status_.ok(); ++i) {
      if (find_invalid_utf8(source_.merges[i])) fail("merges", at(i) + " is not valid UTF-8");
      merges.push_back(source_.merges[i]);
    }
    file_ = {{"version", "1.0"},
             {"added_tokens", std::move(added_)},
             {"decoder", {{"type", "ByteLevel"}}},
             {"model", {{"type", "BPE"}, {"vocab", std::move(vocab_)}, {"merges", merges}}}};
  }

  void add_pre_tokenizer(const NamedPreTokenizer& pre) {
    json steps = json::array();
    if (!pre.split.empty()) {
      steps.push_back(
          {{"type", "Split"}, {"pattern", {{"Regex", pre.split}}}, {"behavior", "Isolated"}});
    }
    steps.push_back({{"type", "ByteLevel"},
                     {"add_prefix_space", source_.add_space_prefix.value_or(false)},
                     {"use_regex", pre.gpt2_words}});
    file_["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", std::move(steps)}};
  }

  void add_ends(bool add_bos) {
    json single = json::array();
    json special_tokens = json::object();
    const auto add = [&](std::optional<int64_t> id, std::string_view key) {
      const std::string name(source_.token_name(id));
      if (name.empty()) return fail(key, "names no token, but one is to be added to texts");
      single.push_back({{"SpecialToken", {{"id", name}}}});
      special_tokens[name] = {{"ids", json::array({*id})}};
    };
    if (add_bos) add(source_.bos_token_id, "bos_token_id");
    single.push_back({{"Sequence", {{"id", "A"}}}});
    if (source_.add_eos_token.value_or(false)) add(source_.eos_token_id, "eos_token_id");
    file_["post_processor"] = {{"type", "TemplateProcessing"},
                               {"single", std::move(single)},
                               {"special_tokens", std::move(special_tokens)}};
  }

  static std::string at(size_t index) { return "[" + std::to_string(index) + "]"; }

  const GgufTokenizer& source_;
  Status status_;
  json::object_t vocab_;
  json::array_t added_;
  json file_;
};

}  // namespace

std::string_view GgufTokenizer::token_name(std::optional<int64_t> id) const {
  if (!id || *id < 0 || static_cast<uint64_t>(*id) >= tokens.size()) return {};
  return tokens[static_cast<size_t>(*id)];
}

Expected<TokenizerDescription> read_gguf_tokenizer(const GgufTokenizer& source) {
  const Expected<json> file = TokenizerJson(source).build();
  if (!file) return file.status();
  return read_tokenizer_json(source.where + ": its tokenizer as tokenizer.json", file->dump());
}

}  // namespace anyslot
