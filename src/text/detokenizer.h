#pragma once

#include <cstdint>
#include <string>

#include "text/tokenizer.h"

namespace anyslot {

/// Turns the tokens of one stream into text as they come. The pieces together are what
/// Tokenizer::decode gives for all ids with special tokens skipped; none ends inside a character.
class StreamingDetokenizer {
 public:
  /// The tokenizer must outlive this.
  explicit StreamingDetokenizer(const Tokenizer& tokenizer) : tokenizer_(&tokenizer) {}

  /// The text that is certain now; empty while a character is incomplete.
  std::string push(int32_t id);
  /// Ends the stream: U+FFFD when a character is incomplete. A new stream may then begin.
  std::string flush();

 private:
  const Tokenizer* tokenizer_;
  std::string pending_;  // the first bytes of a character, at most 3
};

}  // namespace anyslot
