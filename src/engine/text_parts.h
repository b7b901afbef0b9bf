#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "anyslot/config.h"
#include "anyslot/status.h"
#include "engine/model_files.h"
#include "text/chat_template.h"
#include "text/rag_template.h"
#include "text/tokenizer.h"

namespace anyslot::internal {

/// What a model's files have for text.
struct TextParts {
  std::shared_ptr<const Tokenizer> tokenizer;  // null: none
  std::optional<ChatTemplate> chat_template;
  std::optional<RagTemplate> rag_template;
  std::vector<int32_t> stop_token_ids;  // of the RAG template

  bool block_trained() const { return rag_template && rag_template->block_trained(); }
  Method default_method() const { return block_trained() ? Method::kLazy : Method::kPrefix; }
};

/// Loads what can be loaded. Returns why other things could not, in the order of loading.
std::vector<Status> load_text_parts(const ModelFiles& files, TextParts& parts);

/// Fails with kFailedPrecondition when the tokenizer has ids that the model has not.
Status check_vocabulary(const std::string& model_path, const Tokenizer* tokenizer,
                        int64_t vocab_size);

}  // namespace anyslot::internal
