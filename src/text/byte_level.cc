#include "text/byte_level.h"

#include "text/utf8.h"

namespace anyslot {

namespace {

constexpr int kAlphabetEnd =
    0x100 + 68;  // 68 bytes are not printable and are written from U+0100 on

struct Alphabet {
  std::array<char32_t, 256> of_byte{};
  std::array<int16_t, kAlphabetEnd> to_byte{};  // -1: not in the alphabet
};

constexpr bool stands_for_itself(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

constexpr Alphabet make_alphabet() {
  Alphabet alphabet;
  for (int16_t& byte : alphabet.to_byte) byte = -1;
  char32_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const char32_t written = stands_for_itself(byte) ? static_cast<char32_t>(byte) : next++;
    alphabet.of_byte[byte] = written;
    alphabet.to_byte[written] = static_cast<int16_t>(byte);
  }
  return alphabet;
}

constexpr Alphabet kAlphabet = make_alphabet();

}  // namespace

char32_t byte_to_alphabet(uint8_t byte) { return kAlphabet.of_byte[byte]; }

std::optional<std::string> alphabet_to_bytes(std::string_view token) {
  std::string bytes;
  bytes.reserve(token.size());
  while (!token.empty()) {
    const char32_t code_point = first_code_point(token);
    if (code_point >= kAlphabetEnd || kAlphabet.to_byte[code_point] < 0) return std::nullopt;
    bytes += static_cast<char>(kAlphabet.to_byte[code_point]);
    token.remove_prefix(next_utf8_unit(token).size);
  }
  return bytes;
}

}  // namespace anyslot
