#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace anyslot {

/// The replacement character U+FFFD.
inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

/// What the first bytes of a string are, by the Unicode standard's table of well-formed sequences.
struct Utf8Unit {
  enum class Kind : uint8_t {
    kCharacter,   // a whole character
    kIncomplete,  // the string ends inside what may still become a character
    kInvalid,  // a longest prefix that no more bytes can make a character; one U+FFFD stands for it
  };
  Kind kind = Kind::kCharacter;
  uint8_t size = 0;  // bytes, at least 1
};

/// `bytes` must not be empty.
Utf8Unit next_utf8_unit(std::string_view bytes);

/// The offset of the first byte that is not part of a character.
std::optional<size_t> find_invalid_utf8(std::string_view text);

/// Appends the characters of `bytes`, with U+FFFD for each invalid or incomplete unit.
void append_utf8_lossy(std::string& out, std::string_view bytes);

void append_code_point(std::string& out, char32_t code_point);

/// The code point of the character that `text` starts with; `text` must be valid and not empty.
char32_t first_code_point(std::string_view text);
/// The code point of the character that `text` ends with; `text` must be valid and not empty.
char32_t last_code_point(std::string_view text);

/// The Unicode property White_Space.
bool is_white_space(char32_t code_point);
/// A letter, mark, digit, connector or join control: the \w of Unicode regular expressions.
bool is_word_character(char32_t code_point);
/// The Unicode categories Nd, Nl and No.
bool is_numeric(char32_t code_point);
/// The Unicode categories P*, and the symbols among ASCII's punctuation.
bool is_punctuation(char32_t code_point);
/// Whether `text` is one whole character.
bool is_one_character(std::string_view text);

}  // namespace anyslot
