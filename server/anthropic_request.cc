#include "anthropic_request.h"

#include <algorithm>
#include <string>
#include <utility>

#include "sampling_fields.h"

namespace anyslot::server {

using nlohmann::json;

namespace {

constexpr size_t kMaxMessages = 4096;
constexpr size_t kMaxBlocks = 4096;  // of one message or text
constexpr int64_t kMinute = 60;      // seconds

/// Reads the parts of one request.
class MessagesReader {
 public:
  MessagesReader(const RequestRules& rules, AnswerRequest& request)
      : rules_(rules), request_(request) {}

  std::vector<ChatMessage> read(RequestFields& fields) {
    std::vector<ChatMessage> messages;
    if (fields.find("system") != nullptr) {
      messages.push_back({ChatRole::kSystem, read_text(fields, "system"), {}});
    }
    fields.require("messages");
    const json* list = fields.array("messages");
    if (list == nullptr) return messages;
    if (list->empty()) fields.fail("messages", "is empty");
    fields.check_size("messages", *list, kMaxMessages);
    for (size_t i = 0; fields.ok() && i < list->size(); ++i) {
      RequestFields message((*list)[i], "messages[" + std::to_string(i) + "]");
      messages.push_back(read_message(message));
      if (const auto error = message.finish()) fields.fail(*error);
    }
    read_cache_control(fields);
    return messages;
  }

 private:
  ChatMessage read_message(RequestFields& message) {
    ChatMessage read;
    message.require("role");
    const std::string role = message.string("role").value_or("user");
    if (role == "assistant") {
      read.role = ChatRole::kAssistant;
    } else if (role != "user") {
      message.fail("role", "\"" + excerpt(role) +
                               "\" is not supported; use user or assistant, and "
                               "the field system for instructions");
    }
    message.require("content");
    const json* content = message.find("content");
    if (content == nullptr) return read;
    if (content->is_string()) {
      read.content = content->get<std::string>();
      return read;
    }
    if (!content->is_array()) {
      message.fail("content", std::string("must be a string or an array of blocks, not ") +
                                  content->type_name());
      return read;
    }
    message.check_size("content", *content, kMaxBlocks);
    for (size_t i = 0; message.ok() && i < content->size(); ++i) {
      RequestFields block((*content)[i], element(message, "content", i));
      read_block(block, read);
      if (const auto error = block.finish()) message.fail(*error);
    }
    return read;
  }

  void read_block(RequestFields& block, ChatMessage& message) {
    block.require("type");
    const std::string type = block.string("type").value_or("");
    if (type == "text") {
      block.require("text");
      message.content += block.string("text").value_or("");
    } else if (type == "document") {
      take(block, message, read_document(block));
    } else if (type == "search_result") {
      take(block, message, read_search_result(block));
    } else if (block.ok()) {
      block.fail("type", "\"" + excerpt(type) +
                             "\" is not supported; blocks may be text, document or search_result");
    }
    read_citations(block);
    read_cache_control(block);
  }

  void take(RequestFields& block, ChatMessage& message, DocumentInput input) {
    if (block.ok() && message.role == ChatRole::kAssistant) {
      block.fail("type", "documents may stand in messages of the user only");
    }
    check_document_count(block, "type", request_.documents.size() + 1, rules_.max_documents);
    if (!block.ok()) return;
    message.documents.push_back(input.document);
    request_.documents.push_back(std::move(input));
  }

  /// Context is what the author of the prompt says of a document: it is told before its text.
  static DocumentInput read_document(RequestFields& block) {
    DocumentInput input;
    input.name = block.name("source");
    block.require("source");
    if (const json* source = block.object("source")) {
      RequestFields fields(*source, block.name("source"));
      input.document.text = read_source(fields);
      if (const auto error = fields.finish()) block.fail(*error);
    }
    if (block.ok() && input.document.text.empty()) block.fail("source", kNothing);
    input.document.title = block.string("title");
    if (const auto context = block.string("context"); context && !context->empty()) {
      input.document.text = *context + "\n\n" + input.document.text;
    }
    return input;
  }

  static std::string read_source(RequestFields& source) {
    source.require("type");
    const std::string type = source.string("type").value_or("");
    if (type == "content") return read_text(source, "content");
    if (type == "text") {
      const std::string media = source.string("media_type").value_or("text/plain");
      if (media != "text/plain") {
        source.fail("media_type", "\"" + excerpt(media) + "\" is not supported; use text/plain");
      }
      source.require("data");
      return source.string("data").value_or("");
    }
    if (!source.ok()) return {};
    const bool is_file = type == "base64" || type == "url" || type == "file";
    source.fail("type", is_file
                            ? "\"" + type +
                                  "\" is not supported: PDF and other files are not read here; "
                                  "send the document's text with type text"
                            : "\"" + excerpt(type) + "\" is not supported; use text or content");
    return {};
  }

  static DocumentInput read_search_result(RequestFields& block) {
    DocumentInput input;
    input.name = block.name("content");
    for (const char* key : {"source", "title", "content"}) block.require(key);
    input.document.id = block.string("source").value_or("");
    input.document.title = block.string("title");
    input.document.text = read_text(block, "content");
    if (block.ok() && input.document.text.empty()) block.fail("content", kNothing);
    check_document_id(block, "source", input.document.id);
    return input;
  }

  /// A text, or an array of text blocks, which are joined by line ends.
  static std::string read_text(RequestFields& fields, const std::string& key) {
    const json* value = fields.find(key);
    if (value == nullptr) return {};
    if (value->is_string()) return value->get<std::string>();
    if (!value->is_array()) {
      fields.fail(key, std::string("must be a string or an array of text blocks, not ") +
                           value->type_name());
      return {};
    }
    fields.check_size(key, *value, kMaxBlocks);
    std::string text;
    for (size_t i = 0; fields.ok() && i < value->size(); ++i) {
      RequestFields block((*value)[i], element(fields, key, i));
      const std::string type = block.string("type").value_or("text");
      if (type != "text") {
        block.fail("type", "\"" + excerpt(type) + "\" is not supported; only text is");
      }
      block.require("text");
      if (i > 0) text += '\n';
      text += block.string("text").value_or("");
      read_citations(block);
      read_ttl(block);  // what stands before it is kept anyway, while there is room
      if (const auto error = block.finish()) fields.fail(*error);
    }
    return text;
  }

  static void read_citations(RequestFields& block) {
    block.unsupported("citations", {json::array(), json::object(), {{"enabled", false}}});
  }

  /// The time to live of a cache_control, in seconds.
  static std::optional<int64_t> read_ttl(RequestFields& fields) {
    const json* control = fields.object("cache_control");
    if (control == nullptr) return std::nullopt;
    RequestFields inner(*control, fields.name("cache_control"));
    inner.require("type");
    const std::string type = inner.string("type").value_or("ephemeral");
    if (type != "ephemeral") {
      inner.fail("type", "\"" + excerpt(type) + "\" is not supported; use ephemeral");
    }
    const std::string ttl = inner.string("ttl").value_or("5m");
    if (ttl != "5m" && ttl != "1h") {
      inner.fail("ttl", "\"" + excerpt(ttl) + "\" is not supported; use 5m or 1h");
    }
    if (const auto error = inner.finish()) fields.fail(*error);
    return ttl == "1h" ? 60 * kMinute : 5 * kMinute;
  }

  /// Everything up to a cache_control is kept: so are the documents read so far.
  void read_cache_control(RequestFields& fields) {
    const auto ttl = read_ttl(fields);
    if (!ttl) return;
    for (DocumentInput& input : request_.documents) {
      input.pin = true;
      input.ttl_seconds = std::max(*ttl, input.ttl_seconds.value_or(0));
    }
  }

  static std::string element(const RequestFields& fields, const std::string& key, size_t index) {
    return fields.name(key) + "[" + std::to_string(index) + "]";
  }

  static constexpr const char* kNothing = "is empty: there is nothing to encode";

  const RequestRules& rules_;
  AnswerRequest& request_;
};

void read_sampling_of_messages(RequestFields& fields, SamplingParams& sampling) {
  fields.require("max_tokens");
  sampling.max_tokens = static_cast<int>(fields.integer("max_tokens", 1).value_or(1));
  sampling.temperature = 1.0F;
  read_float(fields, "temperature", sampling.temperature);
  read_float(fields, "top_p", sampling.top_p);
  sampling.top_k = static_cast<int>(fields.integer("top_k").value_or(0));
  read_stop_strings(fields, "stop_sequences", sampling);
  read_seed(fields, sampling);
}

void refuse_unsupported(RequestFields& fields) {
  static_cast<void>(fields.object("metadata"));
  fields.unsupported("tools", {json::array()});
  fields.unsupported("tool_choice", {{{"type", "none"}}});
  fields.unsupported("thinking", {{{"type", "disabled"}}});
  fields.unsupported("service_tier", {"auto", "standard_only"});
  fields.unsupported("mcp_servers", {json::array()});
  for (const char* key : {"container", "context_management", "output_config", "output_format",
                          "inference_geo", "speed"}) {
    fields.unsupported(key);
  }
}

}  // namespace

ApiExpected<AnswerRequest> parse_messages_request(const json& body, const RequestRules& rules) {
  RequestFields fields(body, "");
  AnswerRequest request;
  check_model(fields, rules.model);
  read_sampling_of_messages(fields, request.sampling);
  request.fit_max_tokens = true;  // every request must give it, as a limit
  request.stream = fields.boolean("stream").value_or(false);
  request.input = Conversation{MessagesReader(rules, request).read(fields)};
  read_own_fields(fields, request);
  refuse_unsupported(fields);
  if (auto error = fields.finish()) return *std::move(error);
  return request;
}

}  // namespace anyslot::server
