#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "anyslot/engine.h"
#include "anyslot/request.h"
#include "document_fields.h"
#include "errors.h"

namespace anyslot::server {

enum class Api : uint8_t { kCompletions, kChat };

/// What a request's fields may be.
struct RequestRules {
  std::string model;  // the name that is served
  int max_documents = 0;
  int default_chat_tokens = 0;  // max_tokens of a chat request that does not say
};

struct Prompt {
  std::variant<std::string, std::vector<int32_t>> content;
};

struct Conversation {
  std::vector<ChatMessage> messages;
};

/// A request of /v1/completions or /v1/chat/completions.
struct AnswerRequest {
  std::variant<Prompt, Conversation> input;
  /// In prompt order; the first `num_leading` of them stand before everything else that was asked,
  /// the others belong to messages.
  std::vector<DocumentInput> documents;
  size_t num_leading = 0;
  SamplingParams sampling;
  std::optional<Method> method;
  std::string cache_salt;
  bool fit_max_tokens = false;  // max_tokens is a default
  bool stream = false;
  bool include_usage = false;  // in a chunk of its own at the end of a stream
};

/// Reads a request. Fails with 404 for a model that is not served and with 400 for everything that
/// is wrong or not supported, by the field's name.
ApiExpected<AnswerRequest> parse_completion_request(const nlohmann::json& body,
                                                    const RequestRules& rules);
ApiExpected<AnswerRequest> parse_chat_request(const nlohmann::json& body,
                                              const RequestRules& rules);

/// Fields that other requests have as well.
void check_model(RequestFields& fields, const std::string& served);
std::optional<Method> read_method(RequestFields& fields);

/// The request for the engine: its prompt is put together by the model's templates. `tenant`: the
/// one that asks; empty: there are none.
Expected<Request> engine_request(const Engine& engine, const AnswerRequest& request,
                                 const std::string& tenant);

}  // namespace anyslot::server
