#include "text/detokenizer.h"

#include <utility>

#include "text/tokenizer_parts.h"
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

StreamingDetokenizer::StreamingDetokenizer(const Tokenizer& tokenizer, bool skip_special_tokens)
    : tokenizer_(&tokenizer),
      skip_special_tokens_(skip_special_tokens),
      strips_left_(tokenizer.parts().decoder.strip().start) {}

std::string StreamingDetokenizer::push(int32_t id) {
  const TokenizerParts& parts = tokenizer_->parts();
  const Vocabulary::Token* token = parts.vocabulary.find(id);
  std::string text;
  if (token == nullptr || (skip_special_tokens_ && token->special)) return text;
  const bool first = std::exchange(is_first_, false);
  if (parts.decoder.byte_level()) {
    add_bytes(token->bytes, text);
  } else if (token->is_byte) {
    pending_ += token->bytes;
  } else {
    end_run(text);
    if (first && parts.decoder.first_differs()) {
      // Every name went through the decoder when the tokenizer was made.
      add_text(parts.decoder.text_of(token->name, true)->bytes, text);
    } else {
      add_text(token->bytes, text);
    }
  }
  return text;
}

std::string StreamingDetokenizer::flush() {
  std::string text;
  if (tokenizer_->parts().decoder.byte_level()) {
    append_utf8_lossy(text, std::exchange(pending_, {}));
  } else {
    end_run(text);
  }
  is_first_ = true;
  strips_left_ = tokenizer_->parts().decoder.strip().start;
  return text;
}

void StreamingDetokenizer::add_bytes(std::string_view bytes, std::string& text) {
  pending_ += bytes;
  const size_t certain = pending_.size() - incomplete_tail(pending_);
  append_utf8_lossy(text, std::string_view(pending_).substr(0, certain));
  pending_.erase(0, certain);
}

void StreamingDetokenizer::end_run(std::string& text) {
  const std::string run = std::exchange(pending_, {});
  if (!find_invalid_utf8(run)) return add_text(run, text);
  for (size_t i = 0; i < run.size(); ++i) add_text(kReplacementCharacter, text);
}

void StreamingDetokenizer::add_text(std::string_view bytes, std::string& text) {
  if (strips_left_ > 0) {
    const std::string& strip = tokenizer_->parts().decoder.strip().character;
    for (; strips_left_ > 0 && bytes.starts_with(strip); --strips_left_) {
      bytes.remove_prefix(strip.size());
    }
    if (!bytes.empty()) strips_left_ = 0;
  }
  text += bytes;
}

}  // namespace anyslot
