#include "text/chat_template_source.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "text/json_fields.h"

namespace anyslot {

using nlohmann::json;

namespace {

/// A token is written as its name or as an object with the name in `content`; null is none.
std::string token_name(const json& config, const std::string& key) {
  const auto token = config.find(key);
  if (token == config.end()) return {};
  if (token->is_string()) return token->get<std::string>();
  if (token->is_object()) return token->value("content", std::string());
  return {};
}

/// The text of `chat_template`: a string, or a list of {name, template} with one named default.
std::string template_text(const json& config) {
  const auto field = config.find("chat_template");
  if (field == config.end()) return {};
  if (field->is_string()) return field->get<std::string>();
  if (!field->is_array()) return {};
  for (const json& entry : *field) {
    if (entry.is_object() && entry.value("name", std::string()) == "default") {
      return entry.value("template", std::string());
    }
  }
  return {};
}

bool is_file(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error);
}

}  // namespace

Expected<std::optional<ChatTemplateSource>> read_chat_template(const std::string& folder) {
  const std::filesystem::path config_path = std::filesystem::path(folder) / "tokenizer_config.json";
  const std::filesystem::path jinja_path = std::filesystem::path(folder) / "chat_template.jinja";
  ChatTemplateSource source;
  source.path = config_path.string();
  if (is_file(config_path)) {
    const Expected<std::string> text = read_file(config_path.string());
    if (!text) return text.status();
    const Expected<json> config = parse_json(config_path.string(), *text);
    if (!config) return config.status();
    try {
      source.text = template_text(*config);
      source.bos_token = token_name(*config, "bos_token");
      source.eos_token = token_name(*config, "eos_token");
    } catch (const json::exception& error) {  // a field of another type
      return failed_precondition(config_path.string() + ": chat template: " + error.what());
    }
  }
  if (is_file(jinja_path)) {
    Expected<std::string> text = read_file(jinja_path.string());
    if (!text) return text.status();
    source.path = jinja_path.string();
    source.text = *std::move(text);
  }
  if (source.text.empty()) return std::optional<ChatTemplateSource>();
  return std::optional<ChatTemplateSource>(std::move(source));
}

}  // namespace anyslot
