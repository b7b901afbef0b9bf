#include "router.h"

#include <algorithm>
#include <optional>

namespace anyslot::server {

namespace {

constexpr std::string_view kKeyPart = "{key}";

std::optional<int> hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

/// None for a % that two digits do not follow.
std::optional<std::string> percent_decoded(std::string_view text, bool plus_is_space) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus_is_space) {
      decoded += ' ';
    } else if (text[i] != '%') {
      decoded += text[i];
    } else {
      const auto high = i + 2 < text.size() ? hex_digit(text[i + 1]) : std::nullopt;
      const auto low = high ? hex_digit(text[i + 2]) : std::nullopt;
      if (!low) return std::nullopt;
      decoded += static_cast<char>(*high * 16 + *low);
      i += 2;
    }
  }
  return decoded;
}

/// What stands for {key}, or the empty string for a pattern without; none when the path differs.
std::optional<std::string> match_path(std::string_view pattern, std::string_view path) {
  const size_t at = pattern.find(kKeyPart);
  if (at == std::string_view::npos) return path == pattern ? std::optional("") : std::nullopt;
  const std::string_view end = pattern.substr(at + kKeyPart.size());
  if (path.size() <= at + end.size() || !path.starts_with(pattern.substr(0, at)) ||
      !path.ends_with(end)) {
    return std::nullopt;
  }
  const std::string_view key = path.substr(at, path.size() - at - end.size());
  if (key.find('/') != std::string_view::npos) return std::nullopt;
  return percent_decoded(key, false);
}

std::optional<ApiError> parse_query(std::string_view text, const Route& route,
                                    std::map<std::string, std::string>& query) {
  while (!text.empty()) {
    const std::string_view pair = text.substr(0, text.find('&'));
    text.remove_prefix(std::min(text.size(), pair.size() + 1));
    if (pair.empty()) continue;
    const size_t equals = std::min(pair.find('='), pair.size());
    const auto name = percent_decoded(pair.substr(0, equals), true);
    const auto value = percent_decoded(pair.substr(std::min(equals + 1, pair.size())), true);
    if (!name || !value) return ApiError{400, "the query of the URL is not percent-encoded"};
    if (std::ranges::find(route.query, *name) == route.query.end()) {
      return ApiError{400, *name + ": is not a parameter of " + route.path + "; leave it out",
                      *name, "unknown_parameter"};
    }
    query[*name] = *value;
  }
  return std::nullopt;
}

}  // namespace

ApiExpected<RouteMatch> Router::find(const std::string& method, std::string_view target) const {
  const std::string_view path = target.substr(0, target.find('?'));
  const std::string_view query = target.substr(std::min(path.size() + 1, target.size()));
  std::string allowed;
  for (const Route& route : routes_) {
    auto key = match_path(route.path, path);
    if (!key) continue;
    if (route.method != method && !(route.method == "GET" && method == "HEAD")) {
      allowed += (allowed.empty() ? "" : ", ") + route.method;
      if (route.method == "GET") allowed += ", HEAD";
      continue;
    }
    RouteMatch match{&route, *std::move(key), {}};
    if (route.open) return match;
    if (auto error = parse_query(query, route, match.query)) return *std::move(error);
    return match;
  }
  if (!allowed.empty()) {
    return ApiError{405,
                    std::string(path) + " does not take " + method + "; use " + allowed,
                    "",
                    "method_not_allowed",
                    {{"Allow", allowed}}};
  }
  return ApiError{404, "there is nothing at " + std::string(path), "", "unknown_url"};
}

ErrorFormat Router::error_format(std::string_view target) const {
  const std::string_view path = target.substr(0, target.find('?'));
  for (const Route& route : routes_) {
    if (match_path(route.path, path)) return route.error_body;
  }
  return openai_error_body;
}

}  // namespace anyslot::server
