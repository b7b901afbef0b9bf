#include "text/vocabulary.h"

#include <utility>

namespace anyslot {

Status Vocabulary::add(int64_t id, Token token) {
  if (id < 0 || id > kMaxTokenId) {
    return failed_precondition("token '" + token.name + "' has the id " + std::to_string(id) +
                               "; ids must lie between 0 and " + std::to_string(kMaxTokenId));
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
  Token& token = tokens_.at(static_cast<size_t>(id)).value();
  token.bytes = token.name;
  token.special = true;
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
