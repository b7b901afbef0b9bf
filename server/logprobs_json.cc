#include "logprobs_json.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "json_body.h"

namespace anyslot::server {

using nlohmann::json;

namespace {

/// JSON has no infinity; this is what OpenAI writes for a token that cannot come.
constexpr double kImpossible = -9999.0;

double finite(float logprob) {
  return std::isfinite(logprob) ? static_cast<double>(logprob) : kImpossible;
}

json entry(const std::string& bytes, float logprob) {
  json list = json::array();
  for (const char byte : bytes) list.push_back(static_cast<unsigned char>(byte));
  return {{"token", bytes}, {"logprob", finite(logprob)}, {"bytes", std::move(list)}};
}

size_t num_characters(const std::string& text) {
  return static_cast<size_t>(
      std::ranges::count_if(text, [](char c) { return (c & '\xc0') != '\x80'; }));
}

}  // namespace

json chat_logprob(const TokenInfo& token) {
  json result = entry(token.bytes, token.logprob);
  json top = json::array();
  for (const auto& [bytes, logprob] : token.top) top.push_back(entry(bytes, logprob));
  result["top_logprobs"] = std::move(top);
  return result;
}

json empty_completion_logprobs() {
  return {{"tokens", json::array()},
          {"token_logprobs", json::array()},
          {"top_logprobs", json::array()},
          {"text_offset", json::array()}};
}

void append_completion_logprob(const TokenInfo& token, size_t& offset, json& logprobs) {
  json top = json::object();
  top[token.bytes] = finite(token.logprob);
  for (const auto& [bytes, logprob] : token.top) {
    if (!top.contains(bytes)) top[bytes] = finite(logprob);
  }
  logprobs["tokens"].push_back(token.bytes);
  logprobs["token_logprobs"].push_back(finite(token.logprob));
  logprobs["top_logprobs"].push_back(std::move(top));
  logprobs["text_offset"].push_back(offset);
  offset += num_characters(token.bytes);
}

void append_completion_logprobs(std::string& text, size_t count,
                                const std::function<TokenInfo(size_t)>& token) {
  size_t offset = 0;
  std::array<std::string, 4> lists;
  constexpr std::array kNames = {"tokens", "token_logprobs", "top_logprobs", "text_offset"};
  for (size_t i = 0; i < count; ++i) {
    json one = empty_completion_logprobs();
    append_completion_logprob(token(i), offset, one);
    for (size_t list = 0; list < lists.size(); ++list) {
      if (i > 0) lists[list] += ',';
      lists[list] += to_text(one[kNames[list]][0]);
    }
  }
  for (size_t list = 0; list < lists.size(); ++list) {
    text.append(list == 0 ? "{\"" : ",\"").append(kNames[list]).append("\":[");
    text.append(lists[list]).append("]");
    lists[list] = {};
  }
  text += '}';
}

}  // namespace anyslot::server
