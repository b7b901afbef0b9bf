#include "json_body.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <vector>

namespace anyslot::server {

using nlohmann::json;

namespace {

constexpr size_t kMaxValues = size_t{1} << 20;

/// Counted in text that need not be JSON.
struct Shape {
  int depth = 0;      // brackets outside of strings, open at once at most
  size_t values = 0;  // at least as many as the text has
};

Shape shape_of(std::string_view json) {
  Shape shape;
  shape.values = 1;
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      shape.depth = std::max(shape.depth, ++depth);
      ++shape.values;
    } else if (c == '}' || c == ']') {
      --depth;
    } else if (c == ',') {
      ++shape.values;
    }
  }
  return shape;
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
  const std::string_view reason = end == std::string_view::npos ? what : what.substr(end + 2);
  constexpr std::string_view kQuote = "last read: '";
  const size_t quote = reason.find(kQuote);
  if (quote == std::string_view::npos) return std::string(reason);
  const size_t token = quote + kQuote.size();
  return std::string(reason.substr(0, token)) + excerpt(reason.substr(token));
}

}  // namespace

ApiExpected<json> parse_body(std::string_view body, int max_depth) {
  if (body.empty()) return ApiError{400, "the request has no body; send a JSON object"};
  const Shape shape = shape_of(body);
  if (shape.depth > max_depth) {
    return ApiError{400,
                    "the body nests " + std::to_string(shape.depth) +
                        " levels of brackets; at most " + std::to_string(max_depth) +
                        " are allowed",
                    "", "json_too_deep"};
  }
  if (shape.values > kMaxValues) {
    return ApiError{400,
                    "the body has about " + std::to_string(shape.values) + " values; at most " +
                        std::to_string(kMaxValues) + " are allowed",
                    "", "json_too_large"};
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
