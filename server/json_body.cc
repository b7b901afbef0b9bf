#include "json_body.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <vector>

namespace anyslot::server {

using nlohmann::json;

namespace {

/// Brackets outside of strings, open at once at most; `json` need not be valid.
int depth_of(std::string_view json) {
  int depth = 0;
  int deepest = 0;
  bool in_string = false;
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      deepest = std::max(deepest, ++depth);
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return deepest;
}

/// Watches a parser for a key that stands twice in one object: the parser would drop the first
/// value.
class KeyWatch {
 public:
  bool operator()(int /*depth*/, json::parse_event_t event, const json& parsed) {
    if (event == json::parse_event_t::object_start) open_.emplace_back();
    if (event == json::parse_event_t::object_end) open_.pop_back();
    if (event == json::parse_event_t::key) {
      const auto& key = parsed.get_ref<const std::string&>();
      if (!open_.back().insert(key).second && !repeated_) repeated_ = key;
    }
    return true;
  }
  /// The first such key.
  const std::optional<std::string>& repeated() const { return repeated_; }

 private:
  std::vector<std::set<std::string>> open_;  // keys of the objects that have begun
  std::optional<std::string> repeated_;
};

/// "[json.exception.parse_error.101] parse error at line 1, column 2: ..." without its first word.
std::string reason_of(const json::exception& error) {
  const std::string_view what = error.what();
  const size_t end = what.find("] ");
  return std::string(end == std::string_view::npos ? what : what.substr(end + 2));
}

}  // namespace

ApiExpected<json> parse_body(std::string_view body, int max_depth) {
  if (body.empty()) return ApiError{400, "the request has no body; send a JSON object"};
  if (const int depth = depth_of(body); depth > max_depth) {
    return ApiError{400,
                    "the body nests " + std::to_string(depth) + " levels of brackets; at most " +
                        std::to_string(max_depth) + " are allowed",
                    "", "json_too_deep"};
  }
  try {
    KeyWatch keys;
    json value = json::parse(body, std::ref(keys));
    if (const auto& key = keys.repeated()) {
      return ApiError{400, *key + ": is given twice in one object; send it once", *key,
                      "repeated_field"};
    }
    if (!value.is_object()) {
      return ApiError{400, std::string("the body must be a JSON object, not ") + value.type_name(),
                      "", "invalid_json"};
    }
    return value;
  } catch (const json::exception& error) {
    return ApiError{400, "the body is not valid JSON: " + reason_of(error), "", "invalid_json"};
  }
}

std::string to_text(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

HttpReply json_reply(const json& body) {
  HttpReply reply;
  reply.body = to_text(body);
  return reply;
}

}  // namespace anyslot::server
