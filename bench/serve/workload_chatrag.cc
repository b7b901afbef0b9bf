#include <algorithm>

#include "workload_parts.h"

namespace anyslot::bench {

namespace {

using nlohmann::json;

/// The turns of a row; those of one speaker that follow each other are joined. Empty when they are
/// not usable or do not end with the user's.
std::vector<WorkloadMessage> messages_of(const json& object) {
  std::vector<WorkloadMessage> messages;
  const auto it = object.find("messages");
  if (it == object.end() || !it->is_array()) return {};
  for (const json& entry : *it) {
    if (!entry.is_object()) return {};
    const std::string role = text_field(entry, "role");
    const ChatRole as = role == "assistant" ? ChatRole::kAssistant : ChatRole::kUser;
    const std::string content = text_field(entry, "content");
    if (!messages.empty() && messages.back().role == as) {
      messages.back().content += "\n" + content;
    } else {
      messages.push_back({as, content, {}});
    }
  }
  if (messages.empty() || messages.back().role != ChatRole::kUser) return {};
  if (messages.front().role == ChatRole::kAssistant) messages.erase(messages.begin());
  return messages;
}

}  // namespace

Expected<Requests> read_chat_rag(const WorkloadOptions& options) {
  constexpr int kAnswerTokens = 64;  // as its own evaluation
  const Expected<std::vector<JsonRow>> rows = read_json_rows(options.dataset_path);
  if (!rows) return rows.status();
  Requests requests;
  for (const auto& [line, object] : *rows) {
    WorkloadRequest request;
    request.id = std::to_string(line);
    request.messages = messages_of(object);
    if (request.messages.empty()) {
      return row_error(options.dataset_path, line, "no \"messages\" that end with the user's");
    }
    const json contexts = object.value("ctxs", json::array());
    const auto limit = static_cast<size_t>(options.documents_per_prompt);
    for (size_t i = 0; i < std::min(limit, contexts.size()); ++i) {
      if (!contexts[i].is_object()) continue;
      const std::string text = text_field(contexts[i], "text");
      if (text.find_first_not_of(" \t\r\n") == std::string::npos) continue;
      request.documents.push_back({text_field(contexts[i], "title"), text, "", {}});
    }
    request.max_tokens = kAnswerTokens;
    request.answers = texts_field(object, "answers");
    request.metric = AnswerMetric::kF1;
    requests.push_back(std::move(request));
  }
  return requests;
}

}  // namespace anyslot::bench
