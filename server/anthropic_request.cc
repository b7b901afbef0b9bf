#include "anthropic_request.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "chat_messages.h"
#include "sampling_fields.h"

namespace anyslot::server {

using nlohmann::json;

namespace {

constexpr int64_t kMinute = 60;  // seconds
constexpr size_t kMaxBreakpoints = 4;
constexpr const char* kNothing = "is empty: there is nothing to encode";

std::string element(const RequestFields& fields, const std::string& key, size_t index) {
  return fields.name(key) + "[" + std::to_string(index) + "]";
}

/// A URL may be longer than an id.
std::string id_of_source(std::string source) {
  if (source.size() <= kMaxIdBytes) return source;
  size_t end = kMaxIdBytes;
  while (end > 0 && (source[end] & '\xc0') == '\x80') --end;
  source.resize(end);
  return source;
}

/// Reads system and messages of one request.
class MessagesReader {
 public:
  MessagesReader(const RequestRules& rules, AnswerRequest& request)
      : rules_(rules), request_(request) {}

  void read(RequestFields& fields) {
    read_system(fields);
    fields.require("messages");
    if (const json* list = fields.array("messages")) read_messages(fields, *list);
    read_cache_control(fields, request_.documents.size());
    hold_documents();
    request_.input = Conversation{std::move(messages_)};
  }

 private:
  /// Everything up to a cache_control is to be kept.
  struct Breakpoint {
    size_t num_documents = 0;
    int64_t seconds = 0;
  };

  void read_system(RequestFields& fields) {
    if (fields.find("system") == nullptr) return;
    std::string text = read_text(fields, "system");
    if (!text.empty()) messages_.push_back({ChatRole::kSystem, std::move(text), {}, "system"});
  }

  void read_messages(RequestFields& fields, const json& list) {
    if (list.empty()) fields.fail("messages", "is empty");
    fields.check_size("messages", list, kMaxMessages);
    for (size_t i = 0; fields.ok() && i < list.size(); ++i) {
      RequestFields message(list[i], "messages[" + std::to_string(i) + "]");
      append(read_message(message), "messages[" + std::to_string(i) + "]");
      if (const auto error = message.finish()) fields.fail(*error);
    }
    if (!fields.ok()) return;
    const ChatMessage& last = messages_.back();
    const std::string name = last.name;
    if (last.role == ChatRole::kAssistant) {
      fields.fail({400,
                   name + ": the last message must be the user's: to go on with an answer "
                          "that was begun is not supported",
                   name});
    } else if (last.content.empty()) {
      fields.fail({400, name + ": holds no text: there is nothing to answer", name});
    }
  }

  /// Consecutive messages of one role are one. Documents of the first question stand before it as
  /// those beside the messages do.
  void append(ChatMessage message, const std::string& name) {
    if (message.role == ChatRole::kAssistant) in_first_question_ = false;
    if (in_first_question_) {
      request_.num_leading = request_.documents.size();
      message.documents.clear();
    }
    const bool goes_on = !messages_.empty() && messages_.back().role == message.role;
    if (!goes_on) {
      message.name = name;
      return messages_.push_back(std::move(message));
    }
    ChatMessage& before = messages_.back();
    if (!before.content.empty() && !message.content.empty()) before.content += '\n';
    before.content += message.content;
    std::move(message.documents.begin(), message.documents.end(),
              std::back_inserter(before.documents));
    before.name = name;
  }

  ChatMessage read_message(RequestFields& message) {
    ChatMessage read;
    message.require("role");
    const std::string role = message.string("role").value_or("user");
    if (role == "assistant") {
      read.role = ChatRole::kAssistant;
    } else if (role != "user") {
      message.fail("role", "\"" + excerpt(role) +
                               "\" is not supported; use user or assistant, and the field system "
                               "for instructions");
    }
    message.require("content");
    const json* content = message.find("content");
    if (content == nullptr) return read;
    if (content->is_string()) {
      read.content = content->get<std::string>();
    } else if (content->is_array()) {
      read_blocks(message, *content, read);
    } else {
      message.fail("content", std::string("must be a string or an array of blocks, not ") +
                                  content->type_name());
    }
    return read;
  }

  void read_blocks(RequestFields& message, const json& blocks, ChatMessage& read) {
    message.check_size("content", blocks, kMaxParts);
    for (size_t i = 0; message.ok() && i < blocks.size(); ++i) {
      RequestFields block(blocks[i], element(message, "content", i));
      read_block(block, read);
      if (const auto error = block.finish()) message.fail(*error);
    }
  }

  void read_block(RequestFields& block, ChatMessage& message) {
    block.require("type");
    const std::string type = block.string("type").value_or("");
    if (type == "text") {
      block.require("text");
      if (!message.content.empty()) message.content += '\n';
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
    read_cache_control(block, request_.documents.size());
  }

  void take(RequestFields& block, ChatMessage& message, DocumentInput input) {
    if (message.role == ChatRole::kAssistant) {
      block.fail("type", "documents may stand in messages of the user only");
    }
    check_document_count(block, "type", request_.documents.size() + 1, rules_.max_documents);
    if (!block.ok()) return;
    message.documents.push_back(input.document);
    request_.documents.push_back(std::move(input));
  }

  /// Context is what the author of the prompt says of a document: it is told before its text.
  DocumentInput read_document(RequestFields& block) {
    DocumentInput input;
    input.name = block.name("source");
    block.require("source");
    if (const json* source = block.object("source")) {
      RequestFields fields(*source, block.name("source"));
      input.document.text = read_source(fields);
      if (const auto error = fields.finish()) block.fail(*error);
    }
    if (input.document.text.empty()) block.fail("source", kNothing);
    input.document.title = block.string("title");
    if (const auto context = block.string("context"); context && !context->empty()) {
      input.document.text = *context + "\n\n" + input.document.text;
    }
    return input;
  }

  std::string read_source(RequestFields& source) {
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
    const bool is_file = type == "base64" || type == "url" || type == "file";
    const std::string cure = is_file ? ": PDF and other files are not read here; send the "
                                       "document's text with type text"
                                     : "; use text or content";
    source.fail("type", "\"" + excerpt(type) + "\" is not supported" + cure);
    return {};
  }

  DocumentInput read_search_result(RequestFields& block) {
    DocumentInput input;
    input.name = block.name("content");
    for (const char* key : {"source", "title", "content"}) block.require(key);
    input.document.id = id_of_source(block.string("source").value_or(""));
    input.document.title = block.string("title");
    input.document.text = read_text(block, "content");
    if (input.document.text.empty()) block.fail("content", kNothing);
    check_document_id(block, "source", input.document.id);
    return input;
  }

  /// A text, or an array of text blocks, which are joined by line ends. A cache_control in one is
  /// that of the document which they make up.
  std::string read_text(RequestFields& fields, const std::string& key) {
    const json* value = fields.find(key);
    if (value == nullptr) return {};
    if (value->is_string()) return value->get<std::string>();
    if (!value->is_array()) {
      fields.fail(key, std::string("must be a string or an array of text blocks, not ") +
                           value->type_name());
      return {};
    }
    fields.check_size(key, *value, kMaxParts);
    std::string text;
    for (size_t i = 0; fields.ok() && i < value->size(); ++i) {
      RequestFields block((*value)[i], element(fields, key, i));
      block.require("type");
      const std::string type = block.string("type").value_or("");
      if (type != "text") {
        block.fail("type", "\"" + excerpt(type) + "\" is not supported; only text is");
      }
      block.require("text");
      if (i > 0) text += '\n';
      text += block.string("text").value_or("");
      read_citations(block);
      read_cache_control(block, request_.documents.size() + 1);
      if (const auto error = block.finish()) fields.fail(*error);
    }
    return text;
  }

  static void read_citations(RequestFields& block) {
    block.unsupported("citations", {json::array(), json::object(), {{"enabled", false}}});
  }

  /// num_documents: those up to it.
  void read_cache_control(RequestFields& fields, size_t num_documents) {
    const json* control = fields.object("cache_control");
    if (control == nullptr) return;
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
    breakpoints_.push_back({num_documents, ttl == "1h" ? 60 * kMinute : 5 * kMinute});
    if (breakpoints_.size() <= kMaxBreakpoints) return;
    fields.fail("cache_control",
                "is one of more than " + std::to_string(kMaxBreakpoints) +
                    " in the request; leave some out",
                "too_many_elements");
  }

  void hold_documents() {
    for (const auto& [num_documents, seconds] : breakpoints_) {
      const size_t end = std::min(num_documents, request_.documents.size());
      for (size_t i = 0; i < end; ++i) {
        int64_t& hold = request_.documents[i].hold_seconds;
        hold = std::max(hold, seconds);
      }
    }
  }

  const RequestRules& rules_;
  AnswerRequest& request_;
  std::vector<ChatMessage> messages_;
  std::vector<Breakpoint> breakpoints_;
  bool in_first_question_ = true;  // no answer has come yet
};

void read_sampling_of_messages(RequestFields& fields, SamplingParams& sampling) {
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

/// What requests for answers and for counts of tokens have.
void read_common(RequestFields& fields, const RequestRules& rules, AnswerRequest& request) {
  check_model(fields, rules.model);
  MessagesReader(rules, request).read(fields);
  read_own_fields(fields, request);
  refuse_unsupported(fields);
}

}  // namespace

ApiExpected<AnswerRequest> parse_messages_request(const json& body, const RequestRules& rules) {
  RequestFields fields(body, "");
  AnswerRequest request;
  fields.require("max_tokens");
  request.sampling.max_tokens = static_cast<int>(fields.integer("max_tokens", 1).value_or(1));
  request.fit_max_tokens = true;  // every request must give it, as a limit
  request.stream = fields.boolean("stream").value_or(false);
  read_sampling_of_messages(fields, request.sampling);
  read_common(fields, rules, request);
  if (auto error = fields.finish()) return *std::move(error);
  return request;
}

ApiExpected<AnswerRequest> parse_count_request(const json& body, const RequestRules& rules) {
  RequestFields fields(body, "");
  AnswerRequest request;
  read_common(fields, rules, request);
  if (auto error = fields.finish()) return *std::move(error);
  return request;
}

}  // namespace anyslot::server
