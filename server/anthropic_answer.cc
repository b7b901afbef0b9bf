#include "anthropic_answer.h"

#include <memory>
#include <string_view>
#include <utility>

#include "anthropic_request.h"
#include "json_body.h"
#include "text_answer.h"
#include "usage_json.h"

namespace anyslot::server {

using nlohmann::json;

namespace {

std::string_view error_type(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 503:
      return "overloaded_error";
    default:
      return status >= 500 ? "api_error" : "invalid_request_error";
  }
}

json error_json(const ApiError& error) {
  return {{"type", "error"},
          {"error", {{"type", error_type(error.status)}, {"message", error_message(error)}}}};
}

/// The three kinds of input tokens make up the prompt: read from the cache; of documents that were
/// computed, by this request or one beside it; others.
json usage_of(const Usage& usage) {
  int64_t created = 0;
  for (const DocumentUsage& document : usage.documents) {
    created += document.tokens - document.cached_tokens;
  }
  return {{"input_tokens", usage.prompt_tokens - usage.cached_tokens - created},
          {"cache_creation_input_tokens", created},
          {"cache_read_input_tokens", usage.cached_tokens},
          {"output_tokens", usage.completion_tokens}};
}

/// With what became of the documents.
json whole_usage_of(const Usage& usage) {
  json whole = usage_of(usage);
  whole["documents"] = document_usages_json(usage);
  return whole;
}

class MessagesAnswer : public TextAnswer {
 public:
  explicit MessagesAnswer(const AnswerSetup& setup)
      : id_(new_answer_id("msg_")), model_(setup.model) {}

  /// Nothing: the first event tells of the prompt's tokens.
  void begin(ResponseSink& /*sink*/) override {}

  void send(const Event& event, ResponseSink& sink) override {
    if (!std::exchange(started_, true)) {
      send_typed(sink, {{"type", "message_start"},
                        {"message", message(json::array(), nullptr, event.usage)}});
      send_typed(sink, {{"type", "content_block_start"},
                        {"index", 0},
                        {"content_block", {{"type", "text"}, {"text", ""}}}});
    }
    if (!event.text.empty()) {
      send_typed(sink, {{"type", "content_block_delta"},
                        {"index", 0},
                        {"delta", {{"type", "text_delta"}, {"text", event.text}}}});
    }
    if (!event.last) return;
    send_typed(sink, {{"type", "content_block_stop"}, {"index", 0}});
    send_typed(sink, {{"type", "message_delta"},
                      {"delta", stop_json(end_of(event))},
                      {"usage", usage_of(event.usage)}});
    send_typed(sink, {{"type", "message_stop"}});
  }

  void send_error(const ApiError& error, ResponseSink& sink) override {
    send_typed(sink, error_json(error));
  }

 protected:
  json whole_json(const std::string& text, const End& end, const Usage& usage) const override {
    return message(json::array({{{"type", "text"}, {"text", text}}}), stop_json(end), usage);
  }

 private:
  static json stop_json(const End& end) {
    const char* reason = end.reason == FinishReason::kLength ? "max_tokens"
                         : end.stop                          ? "stop_sequence"
                                                             : "end_turn";
    return {{"stop_reason", reason}, {"stop_sequence", end.stop ? json(*end.stop) : json()}};
  }

  /// `stop`: null while the answer goes on.
  json message(json content, const json& stop, const Usage& usage) const {
    json message = {{"id", id_},
                    {"type", "message"},
                    {"role", "assistant"},
                    {"model", model_},
                    {"content", std::move(content)},
                    {"stop_reason", nullptr},
                    {"stop_sequence", nullptr},
                    {"usage", whole_usage_of(usage)}};
    if (stop.is_object()) message.update(stop);
    return message;
  }

  std::string id_;
  std::string model_;
  bool started_ = false;
};

std::string anthropic_error_body(const ApiError& error) { return to_text(error_json(error)); }

}  // namespace

AnswerFormat anthropic_format() {
  return {parse_messages_request,
          [](const AnswerSetup& setup) -> std::unique_ptr<AnswerWriter> {
            return std::make_unique<MessagesAnswer>(setup);
          },
          anthropic_error_body};
}

}  // namespace anyslot::server
