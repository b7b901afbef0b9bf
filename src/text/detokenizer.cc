#include "text/detokenizer.h"

#include <utility>

#include "text/utf8.h"

namespace anyslot {

namespace {

/// The size of the incomplete character at the end of `bytes`; 0 when there is none.
size_t incomplete_tail(std::string_view bytes) {
  // A lead byte stands at most 3 bytes before the end of an incomplete character.
  for (size_t size = 1; size <= 3 && size <= bytes.size(); ++size) {
    const std::string_view tail = bytes.substr(bytes.size() - size);
    const Utf8Unit unit = next_utf8_unit(tail);
    if (unit.kind == Utf8Unit::Kind::kIncomplete) return size;
    if (unit.kind == Utf8Unit::Kind::kCharacter) return 0;
  }
  return 0;
}

}  // namespace

std::string StreamingDetokenizer::push(int32_t id) {
  if (tokenizer_->is_special(id)) return {};
  pending_ += tokenizer_->token_bytes(id);
  const size_t certain = pending_.size() - incomplete_tail(pending_);
  std::string text;
  append_utf8_lossy(text, std::string_view(pending_).substr(0, certain));
  pending_.erase(0, certain);
  return text;
}

std::string StreamingDetokenizer::flush() {
  std::string text;
  append_utf8_lossy(text, std::exchange(pending_, {}));
  return text;
}

}  // namespace anyslot
