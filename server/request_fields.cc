#include "request_fields.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace anyslot::server {

using nlohmann::json;

namespace {

/// A number as it is written; what else a value is.
std::string written(const json& value) {
  return value.is_number() ? value.dump() : std::string("of type ") + value.type_name();
}

const json kNoFields = json::object();

}  // namespace

bool is_token_id(const json& value) {
  if (!value.is_number_integer()) return false;
  const auto id = value.get<int64_t>();  // what is beyond becomes negative
  return id >= 0 && id <= std::numeric_limits<int32_t>::max();
}

RequestFields::RequestFields(const json& object, std::string where)
    : object_(object.is_object() ? object : kNoFields), where_(std::move(where)) {
  if (!object.is_object()) {
    error_ = {400, where_ + ": must be an object, not " + object.type_name(), where_};
  }
}

const json* RequestFields::find(const std::string& key) {
  known_.insert(key);
  const auto field = object_.find(key);
  return field == object_.end() || field->is_null() ? nullptr : &*field;
}

std::optional<std::string> RequestFields::string(const std::string& key) {
  const json* field = find(key);
  if (field == nullptr) return std::nullopt;
  if (field->is_string()) return field->get<std::string>();
  fail(key, std::string("must be a string, not ") + field->type_name());
  return std::nullopt;
}

std::optional<bool> RequestFields::boolean(const std::string& key) {
  const json* field = find(key);
  if (field == nullptr) return std::nullopt;
  if (field->is_boolean()) return field->get<bool>();
  fail(key, std::string("must be true or false, not ") + field->type_name());
  return std::nullopt;
}

std::optional<double> RequestFields::number(const std::string& key) {
  const json* field = find(key);
  if (field == nullptr) return std::nullopt;
  if (field->is_number() && std::isfinite(field->get<double>())) return field->get<double>();
  fail(key, std::string("must be a number, not ") + field->type_name());
  return std::nullopt;
}

std::optional<int64_t> RequestFields::integer(const std::string& key, int64_t minimum,
                                              int64_t maximum) {
  const json* field = find(key);
  if (field == nullptr) return std::nullopt;
  if (field->is_number_integer()) {
    const bool fits_int64 =
        !field->is_number_unsigned() ||
        field->get<uint64_t>() <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
    const int64_t value = field->get<int64_t>();
    if (fits_int64 && value >= minimum && value <= maximum) return value;
  }
  fail(key, "is " + written(*field) + "; it must be a whole number from " +
                std::to_string(minimum) + " to " + std::to_string(maximum));
  return std::nullopt;
}

const json* RequestFields::array(const std::string& key) {
  const json* field = find(key);
  if (field == nullptr || field->is_array()) return field;
  fail(key, std::string("must be an array, not ") + field->type_name());
  return nullptr;
}

const json* RequestFields::object(const std::string& key) {
  const json* field = find(key);
  if (field == nullptr || field->is_object()) return field;
  fail(key, std::string("must be an object, not ") + field->type_name());
  return nullptr;
}

void RequestFields::require(const std::string& key) {
  if (find(key) == nullptr) fail(key, "is missing", "missing_field");
}

void RequestFields::check_size(const std::string& key, const json& list, size_t maximum) {
  if (list.size() <= maximum) return;
  fail(key,
       "has " + std::to_string(list.size()) + " elements; at most " + std::to_string(maximum) +
           " are allowed",
       "too_many_elements");
}

void RequestFields::unsupported(const std::string& key, std::initializer_list<json> accepted) {
  const json* field = find(key);
  if (field == nullptr || std::ranges::find(accepted, *field) != accepted.end()) return;
  fail(key, "is not supported; leave it out", "unsupported_field");
}

std::string RequestFields::name(const std::string& key) const {
  return where_.empty() ? excerpt(key) : where_ + "." + excerpt(key);
}

void RequestFields::fail(const std::string& key, const std::string& problem,
                         const std::string& code) {
  fail(ApiError{400, name(key) + ": " + problem, name(key), code});
}

void RequestFields::fail(const ApiError& error) {
  if (!error_) error_ = error;
}

std::optional<ApiError> RequestFields::finish() {
  if (error_) return error_;
  for (const auto& field : object_.items()) {
    if (!known_.contains(field.key()) && !field.value().is_null()) {
      fail(field.key(), "is not a field of this request; leave it out", "unknown_field");
      break;
    }
  }
  return error_;
}

}  // namespace anyslot::server
