#include "model/config_reader.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <utility>

#include "model/json_file.h"

namespace anyslot {

namespace {

std::optional<int64_t> as_integer(const nlohmann::json& json) {
  if (!json.is_number_integer()) return std::nullopt;
  if (json.is_number_unsigned() &&
      json.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    return std::nullopt;
  }
  return json.get<int64_t>();
}

std::string range_text(int64_t min, int64_t max) {
  return "a whole number from " + std::to_string(min) + " to " + std::to_string(max);
}

std::string number_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

/// A value for a message: short ones as JSON, others by their type.
std::string shown(const nlohmann::json& json) {
  if (json.is_structured()) return json.is_array() ? "a list" : "an object";
  if (json.is_string()) return quote_name(json.get_ref<const std::string&>());
  return json.dump();
}

}  // namespace

ConfigReader::ConfigReader(const nlohmann::json& object, std::string where, Status& status)
    : object_(&object), where_(std::move(where)), status_(&status) {}

void ConfigReader::fail(std::string_view key, const std::string& what) const {
  if (status_->ok()) *status_ = failed_precondition(where_ + ": " + std::string(key) + " " + what);
}

const nlohmann::json* ConfigReader::find(std::string_view key) const {
  const auto field = object_->find(std::string(key));
  return field == object_->end() || field->is_null() ? nullptr : &*field;
}

bool ConfigReader::has(std::string_view key) const { return find(key) != nullptr; }

bool ConfigReader::is_null(std::string_view key) const {
  return find(key) == nullptr && object_->contains(std::string(key));
}

int64_t ConfigReader::integer(std::string_view key, int64_t min, int64_t max,
                              std::optional<int64_t> fallback) const {
  const nlohmann::json* field = find(key);
  if (field == nullptr) {
    if (!fallback) fail(key, "is missing; it must be " + range_text(min, max));
    return std::clamp(fallback.value_or(min), min, max);
  }
  const std::optional<int64_t> value = as_integer(*field);
  if (!value || *value < min || *value > max) {
    fail(key, "is " + shown(*field) + "; it must be " + range_text(min, max));
    return min;
  }
  return *value;
}

double ConfigReader::number(std::string_view key, double min, double max,
                            std::optional<double> fallback) const {
  const std::string range =
      "a number above " + number_text(min) + " and at most " + number_text(max);
  const nlohmann::json* field = find(key);
  if (field == nullptr) {
    if (!fallback) fail(key, "is missing; it must be " + range);
    return fallback.value_or(max);
  }
  const double value = field->is_number() ? field->get<double>() : min;
  if (!(value > min && value <= max)) {
    fail(key, "is " + shown(*field) + "; it must be " + range);
    return max;
  }
  return value;
}

bool ConfigReader::boolean(std::string_view key, bool fallback) const {
  const nlohmann::json* field = find(key);
  if (field == nullptr) return fallback;
  if (!field->is_boolean()) {
    fail(key, "is " + shown(*field) + "; it must be true or false");
    return fallback;
  }
  return field->get<bool>();
}

std::vector<int64_t> ConfigReader::integers(std::string_view key, int64_t min, int64_t max) const {
  const nlohmann::json* field = find(key);
  if (field == nullptr) return {};
  const nlohmann::json list = field->is_array() ? *field : nlohmann::json::array({*field});
  std::vector<int64_t> values;
  for (const nlohmann::json& element : list) {
    const std::optional<int64_t> value = as_integer(element);
    if (!value || *value < min || *value > max) {
      fail(key, "holds " + shown(element) + "; it must be " + range_text(min, max) +
                    ", or a list of such numbers");
      return {};
    }
    values.push_back(*value);
  }
  return values;
}

std::vector<double> ConfigReader::numbers(std::string_view key, double min, double max) const {
  const nlohmann::json* field = find(key);
  const std::string wanted =
      "a list of numbers above " + number_text(min) + " and at most " + number_text(max);
  if (field == nullptr || !field->is_array()) {
    fail(key, (field == nullptr ? "is missing" : "is " + shown(*field)) + "; it must be " + wanted);
    return {};
  }
  std::vector<double> values;
  for (const nlohmann::json& element : *field) {
    const double value = element.is_number() ? element.get<double>() : min;
    if (!(value > min && value <= max)) {
      fail(key, "holds " + shown(element) + "; it must be " + wanted);
      return {};
    }
    values.push_back(value);
  }
  return values;
}

std::vector<std::string> ConfigReader::texts(std::string_view key) const {
  const nlohmann::json* field = find(key);
  if (field == nullptr) return {};
  std::vector<std::string> values;
  if (field->is_array()) {
    for (const nlohmann::json& element : *field) {
      if (element.is_string()) values.push_back(element.get<std::string>());
    }
  }
  if (!field->is_array() || values.size() != field->size()) {
    fail(key, "is " + shown(*field) + "; it must be a list of strings");
    return {};
  }
  return values;
}

std::optional<ConfigReader> ConfigReader::object(std::string_view key) const {
  const nlohmann::json* field = find(key);
  if (field == nullptr) return std::nullopt;
  if (!field->is_object()) {
    fail(key, "is " + shown(*field) + "; it must be an object");
    return std::nullopt;
  }
  return ConfigReader(*field, where_ + ": " + std::string(key), *status_);
}

std::string_view ConfigReader::one_of(std::string_view key,
                                      std::span<const std::string_view> allowed,
                                      std::string_view fallback) const {
  const nlohmann::json* field = find(key);
  if (field == nullptr) return fallback;
  std::string list;
  for (const std::string_view value : allowed) {
    if (field->is_string() && field->get_ref<const std::string&>() == value) return value;
    if (!list.empty()) list += ", ";
    list += quote_name(value);
  }
  fail(key, "is " + shown(*field) + ", which is not supported here; supported: " + list);
  return fallback;
}

}  // namespace anyslot
