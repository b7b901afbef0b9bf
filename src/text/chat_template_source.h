#pragma once

#include <optional>
#include <string>

#include "anyslot/status.h"

namespace anyslot {

/// A model's chat template as its files give it.
struct ChatTemplateSource {
  std::string path;  // of the file that holds it, for messages
  std::string text;  // Jinja
  std::string bos_token;
  std::string eos_token;
};

/// Reads chat_template.jinja, or else the field chat_template of tokenizer_config.json, and the
/// names of the tokens from the latter. None when the folder has neither. Fails with
/// kFailedPrecondition for broken files.
Expected<std::optional<ChatTemplateSource>> read_chat_template(const std::string& folder);

}  // namespace anyslot
