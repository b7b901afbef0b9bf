#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "anyslot/engine.h"
#include "anyslot/request.h"
#include "document_fields.h"
#include "request_fields.h"
#include "request_rules.h"

namespace anyslot::server {

struct Prompt {
  std::variant<std::string, std::vector<int32_t>> content;
  std::string name = "prompt";  // what errors call it
};

struct Conversation {
  std::vector<ChatMessage> messages;
};

/// A request for an answer, whichever API it came by.
struct AnswerRequest {
  std::variant<Prompt, Conversation> input;
  /// In prompt order; the first `num_leading` of them stand before everything else that was asked,
  /// the others belong to messages.
  std::vector<DocumentInput> documents;
  size_t num_leading = 0;
  bool texts_have_markup = false;  // special tokens match in documents and prompt
  bool documents_alone = false;    // asks for a method that encodes documents so
  SamplingParams sampling;
  std::optional<Method> method;
  std::string cache_salt;
  bool fit_max_tokens = false;  // max_tokens is a default, or a limit
  bool stream = false;
  bool include_usage = false;  // in a chunk of its own at the end of a stream
};

/// Fields that requests of several APIs have. Refuses a model that is not served with 404.
void check_model(RequestFields& fields, const std::string& served);
std::optional<Method> read_method(RequestFields& fields);
/// method and cache_salt, which no other server knows, and ignore_eos, which few do.
void read_own_fields(RequestFields& fields, AnswerRequest& request);

}  // namespace anyslot::server
