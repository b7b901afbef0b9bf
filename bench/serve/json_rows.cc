#include <fmt/format.h>

#include <algorithm>

#include "base/json_depth.h"
#include "cli/text_file.h"
#include "workload_parts.h"

namespace anyslot::bench {

namespace {

using nlohmann::json;

/// Null when `text` is no JSON that can be used.
json parsed(std::string_view text) {
  if (nests_too_deep(text) || cli::find_invalid_utf8(text)) return {};
  json value = json::parse(text, nullptr, false);
  return value.is_discarded() ? json() : value;
}

Expected<std::vector<JsonRow>> rows_of_array(std::string_view text, const std::string& path) {
  json array = parsed(text);
  if (!array.is_array()) return row_error(path, 1, "the array is no valid JSON in UTF-8");
  std::vector<JsonRow> rows;
  for (json& object : array) {
    const int number = static_cast<int>(rows.size()) + 1;
    if (!object.is_object()) return row_error(path, number, "an entry of the array is no object");
    rows.push_back({number, std::move(object)});
  }
  return rows;
}

Expected<std::vector<JsonRow>> rows_of_lines(std::string_view text, const std::string& path) {
  std::vector<JsonRow> rows;
  for (int number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    json object = parsed(line);
    if (!object.is_object()) return row_error(path, number, "expected one JSON object in UTF-8");
    rows.push_back({number, std::move(object)});
  }
  return rows;
}

}  // namespace

Status row_error(const std::string& path, int line, const std::string& reason) {
  return invalid_argument(fmt::format("{}:{}: {}", cli::input_name(path), line, reason));
}

Expected<std::vector<JsonRow>> read_json_rows(const std::string& path) {
  const Expected<std::string> text = cli::read_file(path);
  if (!text) return text.status();
  std::string_view bytes = *text;
  if (bytes.starts_with("\xef\xbb\xbf")) bytes.remove_prefix(3);
  const size_t begin = bytes.find_first_not_of(" \t\r\n");
  const bool is_array = begin != std::string_view::npos && bytes[begin] == '[';
  Expected<std::vector<JsonRow>> rows =
      is_array ? rows_of_array(bytes, path) : rows_of_lines(bytes, path);
  if (rows && rows->empty()) {
    return invalid_argument(fmt::format("{} holds no rows", cli::input_name(path)));
  }
  return rows;
}

std::string text_field(const json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : "";
}

std::vector<std::string> texts_field(const json& object, const char* key) {
  std::vector<std::string> texts;
  const auto it = object.find(key);
  if (it == object.end()) return texts;
  const auto add = [&texts](const json& value) {
    if (value.is_string()) texts.push_back(value.get<std::string>());
    if (value.is_number()) texts.push_back(value.dump());
  };
  add(*it);
  if (!it->is_array()) return texts;
  for (const json& value : *it) {
    add(value);
    if (!value.is_array()) continue;
    for (const json& inner : value) add(inner);
  }
  return texts;
}

}  // namespace anyslot::bench
