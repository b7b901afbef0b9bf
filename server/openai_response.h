#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "answer_format.h"
#include "anyslot/result.h"
#include "usage_json.h"

namespace anyslot::server {

enum class Api : uint8_t { kCompletions, kChat };

/// What all messages of one answer repeat.
struct AnswerHead {
  Api api = Api::kChat;
  std::string id;
  int64_t created = 0;  // seconds since 1970
  std::string model;
};

/// Puts one choice's events together.
class ChoiceBuilder {
 public:
  ChoiceBuilder(Api api, int index) : api_(api), index_(index) {}

  /// Keeps what the event brought, cheaply; see append_whole.
  void add(Event event);
  /// Bytes of append_whole, roughly.
  size_t whole_bytes() const;
  /// Appends the element of `choices` of a whole answer to JSON text.
  void append_whole(std::string& json, const TokenBytes& token_bytes) const;
  /// That of a stream's chunk with what `event` brought; not to be mixed with add().
  nlohmann::json delta(const Event& event, const TokenBytes& token_bytes);

 private:
  nlohmann::json logprobs_json(const Event& event, const TokenBytes& token_bytes);
  void append_logprobs(std::string& json, const TokenBytes& token_bytes) const;

  Api api_;
  int index_;
  std::string text_;
  std::vector<TokenLogprobs> logprobs_;  // by add()
  size_t num_logprobs_ = 0;              // of them, with the likeliest of each
  size_t text_offset_ = 0;               // characters of the tokens that delta() told
  nlohmann::json finish_reason_;
  nlohmann::json stop_reason_;
};

/// The first chunk of a choice of a chat, which tells the role.
nlohmann::json role_delta(int index);

/// A chunk of a stream, on one line. `usage`: nullopt leaves the field out, a JSON null says that
/// it comes later.
std::string chunk_text(const AnswerHead& head, nlohmann::json choices,
                       std::optional<nlohmann::json> usage);
std::string answer_text(const AnswerHead& head, const std::vector<ChoiceBuilder>& choices,
                        const Usage& usage, const TokenBytes& token_bytes);

}  // namespace anyslot::server
