#include "chat_messages.h"

#include <iterator>
#include <string>
#include <utility>

namespace anyslot::server {

using nlohmann::json;

namespace {

ChatRole read_role(RequestFields& message) {
  message.require("role");
  const std::string role = message.string("role").value_or("user");
  if (role == "system" || role == "developer") return ChatRole::kSystem;
  if (role == "assistant") return ChatRole::kAssistant;
  if (role != "user") {
    message.fail("role",
                 "\"" + excerpt(role) + "\" is not supported; use system, user or assistant",
                 "unsupported_role");
  }
  return ChatRole::kUser;
}

/// [{"type": "text", "text": "..."}, ...]
std::string read_parts(RequestFields& message, const json& parts) {
  std::string content;
  message.check_size("content", parts, kMaxParts);
  for (size_t i = 0; message.ok() && i < parts.size(); ++i) {
    RequestFields part(parts[i], message.name("content") + "[" + std::to_string(i) + "]");
    const std::string type = part.string("type").value_or("");
    if (part.ok() && type != "text") {
      message.fail(
          {400, part.name("type") + ": \"" + excerpt(type) + "\" is not supported; only text is",
           part.name("type"), "unsupported_content"});
      return content;
    }
    part.require("text");
    content += part.string("text").value_or("");
    if (const auto error = part.finish()) message.fail(*error);
  }
  return content;
}

std::string read_content(RequestFields& message) {
  message.require("content");
  const json* content = message.find("content");
  if (content == nullptr) return {};
  if (content->is_string()) return content->get<std::string>();
  if (content->is_array()) return read_parts(message, *content);
  message.fail("content",
               std::string("must be a string or an array of parts, not ") + content->type_name());
  return {};
}

}  // namespace

std::vector<ChatMessage> read_messages(RequestFields& fields, int max_documents,
                                       std::vector<DocumentInput>& documents) {
  std::vector<ChatMessage> messages;
  fields.require("messages");
  const json* list = fields.array("messages");
  if (list == nullptr) return messages;
  if (list->empty()) fields.fail("messages", "is empty");
  fields.check_size("messages", *list, kMaxMessages);
  for (size_t i = 0; fields.ok() && i < list->size(); ++i) {
    RequestFields message((*list)[i], "messages[" + std::to_string(i) + "]");
    ChatMessage& read = messages.emplace_back();
    read.role = read_role(message);
    read.content = read_content(message);
    std::vector<DocumentInput> own =
        read_documents(message, "documents", max_documents, documents.size());
    read.documents = plain_documents(own);
    std::move(own.begin(), own.end(), std::back_inserter(documents));
    for (const char* key : {"tool_calls", "annotations"}) message.unsupported(key, {json::array()});
    for (const char* key :
         {"name", "refusal", "audio", "function_call", "tool_call_id", "reasoning_content"}) {
      message.unsupported(key);
    }
    if (const auto error = message.finish()) fields.fail(*error);
  }
  return messages;
}

}  // namespace anyslot::server
