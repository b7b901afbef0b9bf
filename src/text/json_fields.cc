#include "text/json_fields.h"

#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "base/json_depth.h"

namespace anyslot {

using nlohmann::json;

namespace {

const json kNull;
const json kEmptyArray = json::array();
const json kEmptyObject = json::object();

}  // namespace

Expected<std::string> read_file(const std::string& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);  // fails for folders, too
  if (error) return not_found(path + ": cannot be read: " + error.message());
  std::string text(size, '\0');
  std::ifstream file(path, std::ios::binary);
  if (!file.read(text.data(), static_cast<std::streamsize>(size))) {
    return not_found(path + ": cannot be read; check its permissions");
  }
  return text;
}

Expected<json> parse_json(const std::string& path, const std::string& text) {
  if (nests_too_deep(text))
    return failed_precondition(path + ": nests deeper than any file of its kind");
  try {
    return json::parse(text);
  } catch (const json::exception& error) {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: ..." without its first
    // words
    std::string_view what = error.what();
    for (const std::string_view lead :
         {std::string_view("] "), std::string_view("parse error at ")}) {
      if (const size_t at = what.find(lead); at != std::string_view::npos) {
        what.remove_prefix(at + lead.size());
      }
    }
    return failed_precondition(path + ": not valid JSON: " + std::string(what));
  }
}

JsonFields::JsonFields(const json& object, std::string where)
    : object_(object), where_(std::move(where)) {
  if (!object.is_object()) {
    status_ = failed_precondition(where_ + ": must be an object, not " + object.type_name());
  }
}

const json* JsonFields::find(const std::string& key) {
  known_.insert(key);
  if (!object_.is_object()) return nullptr;
  const auto field = object_.find(key);
  return field == object_.end() || field->is_null() ? nullptr : &*field;
}

const json& JsonFields::get(const std::string& key) {
  const json* field = find(key);
  if (field != nullptr) return *field;
  fail(key, "this field is missing");
  return kNull;
}

const json& JsonFields::get_array(const std::string& key) {
  const json& field = get(key);
  if (field.is_array()) return field;
  fail(key, std::string("must be an array, not ") + field.type_name());
  return kEmptyArray;
}

const json& JsonFields::get_object(const std::string& key) {
  const json& field = get(key);
  if (field.is_object()) return field;
  fail(key, std::string("must be an object, not ") + field.type_name());
  return kEmptyObject;
}

std::string JsonFields::get_string(const std::string& key) {
  const json& field = get(key);
  if (field.is_string()) return field.get<std::string>();
  fail(key, std::string("must be a string, not ") + field.type_name());
  return {};
}

int64_t JsonFields::get_integer(const std::string& key) {
  const json& field = get(key);
  if (field.is_number_integer()) return field.get<int64_t>();
  fail(key, std::string("must be a whole number, not ") + field.type_name());
  return 0;
}

bool JsonFields::get_bool(const std::string& key) {
  const json& field = get(key);
  if (field.is_boolean()) return field.get<bool>();
  fail(key, std::string("must be true or false, not ") + field.type_name());
  return false;
}

bool JsonFields::bool_or(const std::string& key, bool fallback) {
  return find(key) == nullptr ? fallback : get_bool(key);
}

void JsonFields::ignore(std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) known_.emplace(key);
}

void JsonFields::fail(const std::string& key, const std::string& problem) {
  if (status_.ok()) status_ = failed_precondition(name(key) + ": " + problem);
}

void JsonFields::fail(const Status& status) {
  if (status_.ok()) status_ = status;
}

Status JsonFields::finish() const {
  if (!status_.ok() || !object_.is_object()) return status_;
  for (const auto& [key, value] : object_.items()) {
    if (!known_.contains(key)) {
      return failed_precondition(name(key) + ": a field of this name is not supported");
    }
  }
  return {};
}

std::string indexed(const std::string& where, size_t index) {
  return where + "[" + std::to_string(index) + "]";
}

std::string unsupported_type(const std::string& type, std::string_view supported) {
  return "'" + type + "' is not supported (supported: " + std::string(supported) + ")";
}

}  // namespace anyslot
