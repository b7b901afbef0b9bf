#include "race_result.h"

namespace anyslot::bench {

std::string RaceRun::answer() const {
  std::string text;
  for (const RacePiece& piece : pieces) text += piece.text;
  return text;
}

int64_t RaceRun::document_tokens() const {
  int64_t tokens = 0;
  for (const RunDocument& document : documents) tokens += document.tokens;
  return tokens;
}

int64_t RaceRun::cached_document_tokens() const {
  int64_t tokens = 0;
  for (const RunDocument& document : documents) tokens += document.cached;
  return tokens;
}

std::string letter_of(size_t number) {
  const std::string letter(1, static_cast<char>('A' + number % 26));
  return number < 26 ? letter : letter_of(number / 26 - 1) + letter;
}

}  // namespace anyslot::bench
