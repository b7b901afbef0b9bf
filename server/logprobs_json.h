#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "anyslot/result.h"

namespace anyslot::server {

/// A generated token with its bytes, and the same of the likeliest at its place.
struct TokenInfo {
  std::string bytes;
  float logprob = 0;
  std::vector<std::pair<std::string, float>> top;  // bytes, log-probability
};

/// An element of `logprobs.content` of a chat: {token, logprob, bytes, top_logprobs}.
nlohmann::json chat_logprob(const TokenInfo& token);

/// Appends to {tokens, token_logprobs, top_logprobs, text_offset} of a completion. `offset` is that
/// of the token, in characters, and moves behind it.
void append_completion_logprob(const TokenInfo& token, size_t& offset, nlohmann::json& logprobs);
nlohmann::json empty_completion_logprobs();

/// Appends the same of `count` tokens to JSON text, with offsets from 0.
void append_completion_logprobs(std::string& text, size_t count,
                                const std::function<TokenInfo(size_t)>& token);

}  // namespace anyslot::server
