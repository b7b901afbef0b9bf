#include "engine/text_parts.h"

#include <fmt/format.h>

#include <utility>

namespace anyslot::internal {

namespace {

Status load_tokenizer(const ModelFiles& files, TextParts& parts) {
  Expected<std::optional<Tokenizer>> tokenizer = files.tokenizer();
  if (!tokenizer.ok()) return tokenizer.status();
  if (*tokenizer) parts.tokenizer = std::make_shared<const Tokenizer>(std::move(**tokenizer));
  return {};
}

Status load_chat_template(const ModelFiles& files, TextParts& parts) {
  Expected<std::optional<ChatTemplate>> chat_template = files.chat_template();
  if (!chat_template.ok()) return chat_template.status();
  parts.chat_template = std::move(*chat_template);
  return {};
}

Status load_rag_template(const ModelFiles& files, TextParts& parts) {
  const std::string path = files.rag_template_path();
  if (!is_there(path)) return {};
  Expected<RagTemplate> rag_template = RagTemplate::load(path);
  if (!rag_template.ok()) return rag_template.status();
  parts.rag_template = std::move(*rag_template);
  if (parts.tokenizer == nullptr) return {};
  for (const std::string& stop : parts.rag_template->stop()) {
    const auto id = parts.tokenizer->token_id(stop);
    if (!id) {
      return failed_precondition(
          fmt::format("{}: stop token '{}' is not in the tokenizer", path, stop));
    }
    parts.stop_token_ids.push_back(*id);
  }
  return {};
}

}  // namespace

std::vector<Status> load_text_parts(const ModelFiles& files, TextParts& parts) {
  std::vector<Status> failures;
  for (const auto load : {load_tokenizer, load_chat_template, load_rag_template}) {
    if (Status status = load(files, parts); !status.ok()) failures.push_back(std::move(status));
  }
  return failures;
}

Status check_vocabulary(const std::string& model_path, const Tokenizer* tokenizer,
                        int64_t vocab_size) {
  if (tokenizer == nullptr || tokenizer->vocab_size() <= vocab_size) return {};
  return failed_precondition(
      fmt::format("{}: its tokenizer has {} tokens, but the model's vocabulary has {}", model_path,
                  tokenizer->vocab_size(), vocab_size));
}

}  // namespace anyslot::internal
