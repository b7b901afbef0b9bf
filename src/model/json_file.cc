#include "model/json_file.h"

#include <algorithm>
#include <unordered_set>

#include "base/json_depth.h"
#include "model/mapped_file.h"

namespace anyslot {

namespace {

constexpr size_t kMaxJsonBytes = 100'000'000;

/// "line L, column C" of byte `offset`, both counted from 1.
std::string position_of(std::string_view text, size_t offset) {
  const std::string_view before = text.substr(0, std::min(offset, text.size()));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const size_t newline = before.rfind('\n');
  const size_t column = 1 + before.size() - (newline == std::string_view::npos ? 0 : newline + 1);
  return "line " + std::to_string(line) + ", column " + std::to_string(column);
}

}  // namespace

Expected<nlohmann::json> parse_json_object(const std::string& where,
                                           std::span<const std::byte> text) {
  using Json = nlohmann::json;
  const std::string_view view(reinterpret_cast<const char*>(text.data()), text.size());
  if (nests_too_deep(view))
    return failed_precondition(where + ": nests deeper than any file of its kind");
  std::unordered_set<std::string> keys;
  std::string repeated;
  const auto note_keys = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::key && depth == 1) {
      const auto& key = parsed.get_ref<const std::string&>();
      if (!keys.insert(key).second) repeated = key;
    }
    return true;
  };
  try {
    Json json = Json::parse(view.begin(), view.end(), note_keys);
    if (!json.is_object()) return failed_precondition(where + ": not a JSON object");
    if (!repeated.empty()) {
      return failed_precondition(where + ": the key " + quote_name(repeated) + " stands twice");
    }
    return json;
  } catch (const Json::parse_error& error) {
    const size_t offset = error.byte > 0 ? error.byte - 1 : 0;
    return failed_precondition(where + ": invalid JSON at " + position_of(view, offset));
  } catch (const Json::exception&) {
    return failed_precondition(where + ": invalid JSON: a number is out of range");
  }
}

Expected<nlohmann::json> read_json_file(const std::string& path) {
  const Expected<MappedFile> file = MappedFile::open(path);
  if (!file) return file.status();
  if (file->bytes().size() > kMaxJsonBytes) {
    return failed_precondition(path + ": " + std::to_string(file->bytes().size()) +
                               " bytes, more than the " + std::to_string(kMaxJsonBytes) +
                               " that a JSON file may have");
  }
  return parse_json_object(path, file->bytes());
}

std::string quote_name(std::string_view name) {
  constexpr size_t kMaxShown = 160;
  const bool cut = name.size() > kMaxShown;
  if (cut) {
    size_t end = kMaxShown;
    while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xC0U) == 0x80U) --end;
    name = name.substr(0, end);
  }
  std::string text =
      nlohmann::json(name).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (cut) text.insert(text.size() - 1, "...");
  return text;
}

}  // namespace anyslot
