#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "errors.h"

namespace anyslot::server {

/// Whether a value may be a token id: a whole number of 31 bits.
bool is_token_id(const nlohmann::json& value);

/// Reads the fields of one JSON object and remembers the first thing that is wrong, so that a
/// reader can ask for all its fields and check once. An absent field and null are the same.
class RequestFields {
 public:
  /// `where`: the object's place in the request, e.g. "messages[0]"; empty for the request itself.
  RequestFields(const nlohmann::json& object, std::string where);

  /// Null when the field is absent.
  const nlohmann::json* find(const std::string& key);
  std::optional<std::string> string(const std::string& key);
  std::optional<bool> boolean(const std::string& key);
  std::optional<double> number(const std::string& key);
  std::optional<int64_t> integer(const std::string& key, int64_t minimum = 0,
                                 int64_t maximum = std::numeric_limits<int32_t>::max());
  /// Null when the field is absent or something else.
  const nlohmann::json* array(const std::string& key);
  const nlohmann::json* object(const std::string& key);

  void require(const std::string& key);
  /// Refuses a list of more than `maximum` elements.
  void check_size(const std::string& key, const nlohmann::json& list, size_t maximum);
  /// A field that other servers know. Values that ask for what happens anyway are accepted.
  void unsupported(const std::string& key, std::initializer_list<nlohmann::json> accepted = {});

  /// The place of a field in the request, e.g. "messages[0].role".
  std::string name(const std::string& key) const;
  /// Records "NAME: PROBLEM" unless something was wrong before.
  void fail(const std::string& key, const std::string& problem, const std::string& code = {});
  void fail(const ApiError& error);

  bool ok() const { return !error_; }
  /// What was wrong first; with everything read, a field that nobody asked for.
  std::optional<ApiError> finish();

 private:
  const nlohmann::json& object_;
  std::string where_;
  std::set<std::string, std::less<>> known_;
  std::optional<ApiError> error_;
};

}  // namespace anyslot::server
