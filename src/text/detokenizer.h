#pragma once

#include <cstdint>
#include <string>

#include "text/tokenizer.h"

namespace anyslot {

/// Turns the tokens of one stream into text as they come. The pieces together are what
/// Tokenizer::decode gives for all ids; none ends inside a character.
///
/// Where a vocabulary has tokens for single bytes (byte fallback), a run of them is text when it is
/// valid UTF-8 as a whole, else each of its bytes becomes U+FFFD, as in Hugging Face's decoder. So
/// such a run is text only when another token follows, or the stream ends.
class StreamingDetokenizer {
 public:
  /// The tokenizer must outlive this.
  explicit StreamingDetokenizer(const Tokenizer& tokenizer, bool skip_special_tokens = true);

  /// The text that is certain now; empty while a character or a run of bytes is incomplete.
  std::string push(int32_t id);
  /// Ends the stream: what was held back, with U+FFFD for what is no character. A new stream may
  /// then begin.
  std::string flush();

 private:
  void add_bytes(std::string_view bytes, std::string& text);
  void end_run(std::string& text);
  void add_text(std::string_view bytes, std::string& text);

  const Tokenizer* tokenizer_;
  bool skip_special_tokens_;
  std::string pending_;     // byte-level: the first bytes of a character, at most 3; else a run
  bool is_first_ = true;    // no token came yet
  size_t strips_left_ = 0;  // so many characters may still be taken away
};

}  // namespace anyslot
