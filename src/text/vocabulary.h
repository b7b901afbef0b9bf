#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "anyslot/status.h"

namespace anyslot {

/// Ids above this are refused: no vocabulary is that large, and tables are indexed by id.
inline constexpr int64_t kMaxTokenId = (int64_t{1} << 21) - 1;

/// For looking up a std::string key by a string_view.
struct StringHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};
template <typename Value>
using StringMap = std::unordered_map<std::string, Value, StringHash, std::equal_to<>>;

/// Every token of a tokenizer, of the model and added, by id and by name.
class Vocabulary {
 public:
  struct Token {
    std::string name;        // as the file writes it
    bool special = false;    // no text is merged into it
    bool in_model = false;   // the model has it; else it is added beside the model only
    std::string bytes = {};  // what it decodes to; may be a part of a character
    bool is_byte = false;    // one of the tokens of byte fallback
  };

  /// Fails with kFailedPrecondition when the id is taken or too large, the name has another id, or
  /// the name is not valid UTF-8.
  Status add(int64_t id, Token token);
  /// `id` must have a token, here and below.
  void make_special(int32_t id);
  void set_text(int32_t id, std::string bytes, bool is_byte);

  /// Null for an id that no token has.
  const Token* find(int32_t id) const;
  std::optional<int32_t> id(std::string_view name) const;
  /// The largest id plus one.
  int32_t size() const { return static_cast<int32_t>(tokens_.size()); }

 private:
  std::vector<std::optional<Token>> tokens_;  // [largest id + 1]
  StringMap<int32_t> ids_;
};

}  // namespace anyslot
