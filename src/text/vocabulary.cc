#include "text/vocabulary.h"

#include <utility>

#include "text/utf8.h"

namespace anyslot {

Status Vocabulary::add(int64_t id, Token token) {
  if (id < 0 || id > kMaxTokenId) {
    return failed_precondition("token '" + token.name + "' has the id " + std::to_string(id) +
                               "; ids must lie between 0 and " + std::to_string(kMaxTokenId));
  }
  if (find_invalid_utf8(token.name)) {
    return failed_precondition("the name of token " + std::to_string(id) + " is not valid UTF-8");
  }
  if (static_cast<size_t>(id) >= tokens_.size()) tokens_.resize(static_cast<size_t>(id) + 1);
  std::optional<Token>& slot = tokens_[static_cast<size_t>(id)];
  if (slot) {
    return failed_precondition("tokens '" + slot->name + "' and '" + token.name +
                               "' have the same id " + std::to_string(id));
  }
  const auto [entry, inserted] = ids_.try_emplace(token.name, static_cast<int32_t>(id));
  if (!inserted) {
    return failed_precondition("token '" + token.name + "' has two ids, " +
                               std::to_string(entry->second) + " and " + std::to_string(id));
  }
  slot = std::move(token);
  return {};
}

void Vocabulary::make_special(int32_t id) {
  tokens_.at(static_cast<size_t>(id)).value().special = true;
}

void Vocabulary::set_text(int32_t id, std::string bytes, bool is_byte) {
  Token& token = tokens_.at(static_cast<size_t>(id)).value();
  token.bytes = std::move(bytes);
  token.is_byte = is_byte;
}

const Vocabulary::Token* Vocabulary::find(int32_t id) const {
  if (id < 0 || id >= size()) return nullptr;
  const std::optional<Token>& token = tokens_[static_cast<size_t>(id)];
  return token ? &*token : nullptr;
}

std::optional<int32_t> Vocabulary::id(std::string_view name) const {
  const auto entry = ids_.find(name);
  if (entry == ids_.end()) return std::nullopt;
  return entry->second;
}

}  // namespace anyslot
