#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>

#include "anyslot/status.h"

namespace anyslot {

/// Reads a whole file. Fails with kNotFound.
Expected<std::string> read_file(const std::string& path);

/// Parses a JSON file's text. Fails with kFailedPrecondition: "PATH: line L, column C: ...".
Expected<nlohmann::json> parse_json(const std::string& path, const std::string& text);

/// Reads the fields of one JSON object and remembers the first thing that is wrong, so that a
/// reader can ask for all its fields and check once. Messages start with `where`, e.g. "PATH:
/// model".
class JsonFields {
 public:
  JsonFields(const nlohmann::json& object, std::string where);

  /// Null when the field is absent or null.
  const nlohmann::json* find(const std::string& key);
  /// An absent or null field is an error; the result is then a JSON null.
  const nlohmann::json& get(const std::string& key);
  const nlohmann::json& get_array(const std::string& key);
  const nlohmann::json& get_object(const std::string& key);
  std::string get_string(const std::string& key);
  int64_t get_integer(const std::string& key);
  bool get_bool(const std::string& key);
  bool bool_or(const std::string& key, bool fallback);
  /// Fields that have no bearing on what the reader does.
  void ignore(std::initializer_list<std::string_view> keys);

  /// "WHERE.KEY", the name of a field in messages.
  std::string name(const std::string& key) const { return where_ + "." + key; }
  /// Records "WHERE.KEY: PROBLEM" unless something was wrong before.
  void fail(const std::string& key, const std::string& problem);
  void fail(const Status& status);

  /// What was wrong first; with everything read, a field that nobody asked for.
  Status finish() const;
  bool ok() const { return status_.ok(); }
  const Status& status() const { return status_; }

 private:
  const nlohmann::json& object_;
  std::string where_;
  std::set<std::string, std::less<>> known_;
  Status status_;
};

/// "WHERE[INDEX]", the name of an element in messages.
std::string indexed(const std::string& where, size_t index);

/// The complaint about a `type` that no reader knows.
std::string unsupported_type(const std::string& type, std::string_view supported);

}  // namespace anyslot
