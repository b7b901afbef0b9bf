#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "anyslot/config.h"
#include "anyslot/engine.h"
#include "backend/ops.h"
#include "base/trace_file.h"
#include "kv/keys.h"
#include "model/decoder.h"
#include "text/chat_template.h"
#include "text/rag_template.h"
#include "text/token_memo.h"
#include "text/tokenizer.h"

namespace anyslot::internal {

/// Everything that opening an engine loads. The order is that of destruction, backwards.
struct EngineParts {
  EngineConfig config;  // with every zero replaced by what was chosen
  ModelInfo model;
  std::shared_ptr<const Tokenizer> tokenizer;  // null without tokenizer.json; streams share it
  std::optional<RagTemplate> rag_template;
  std::optional<ChatTemplate> chat_template;
  std::vector<int32_t> stop_token_ids;  // the model's and the template's
  KeyDomain key_domain;
  std::shared_ptr<TraceFile> trace;  // null: nothing is traced
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Decoder> decoder;
  std::unique_ptr<KvStorage> storage;
};

Expected<EngineParts> load_engine_parts(const EngineConfig& config);

}  // namespace anyslot::internal
