#include "text/utf8.h"

#include <utf8proc.h>

#include <cstring>

namespace anyslot {

namespace {

// What a lead byte promises: the size of the character and the bounds of its second byte, which are
// tighter than 80..BF where overlong forms, surrogates or values above 10FFFF must be shut out.
struct Lead {
  uint8_t size = 0;  // 0: no character starts with this byte
  uint8_t second_min = 0x80;
  uint8_t second_max = 0xBF;
};

constexpr Lead lead_of(uint8_t byte) {
  if (byte < 0x80) return {.size = 1};
  if (byte < 0xC2) return {};
  if (byte < 0xE0) return {.size = 2};
  if (byte == 0xE0) return {.size = 3, .second_min = 0xA0};
  if (byte == 0xED) return {.size = 3, .second_max = 0x9F};
  if (byte < 0xF0) return {.size = 3};
  if (byte == 0xF0) return {.size = 4, .second_min = 0x90};
  if (byte < 0xF4) return {.size = 4};
  if (byte == 0xF4) return {.size = 4, .second_max = 0x8F};
  return {};
}

bool is_continuation(char byte) { return (static_cast<uint8_t>(byte) & 0xC0) == 0x80; }

size_t ascii_prefix(std::string_view text) {
  size_t n = 0;
  while (n + 8 <= text.size()) {
    uint64_t word;
    std::memcpy(&word, text.data() + n, sizeof word);
    if ((word & 0x8080808080808080U) != 0) break;
    n += 8;
  }
  while (n < text.size() && static_cast<uint8_t>(text[n]) < 0x80) ++n;
  return n;
}

}  // namespace

Utf8Unit next_utf8_unit(std::string_view bytes) {
  using Kind = Utf8Unit::Kind;
  const Lead lead = lead_of(static_cast<uint8_t>(bytes[0]));
  if (lead.size == 0) return {Kind::kInvalid, 1};
  for (uint8_t i = 1; i < lead.size; ++i) {
    if (i == bytes.size()) return {Kind::kIncomplete, i};
    const auto byte = static_cast<uint8_t>(bytes[i]);
    const uint8_t low = i == 1 ? lead.second_min : uint8_t{0x80};
    const uint8_t high = i == 1 ? lead.second_max : uint8_t{0xBF};
    if (byte < low || byte > high) return {Kind::kInvalid, i};
  }
  return {Kind::kCharacter, lead.size};
}

std::optional<size_t> find_invalid_utf8(std::string_view text) {
  size_t offset = ascii_prefix(text);
  while (offset < text.size()) {
    const Utf8Unit unit = next_utf8_unit(text.substr(offset));
    if (unit.kind != Utf8Unit::Kind::kCharacter) return offset;
    offset += unit.size;
    offset += ascii_prefix(text.substr(offset));
  }
  return std::nullopt;
}

void append_utf8_lossy(std::string& out, std::string_view bytes) {
  while (!bytes.empty()) {
    const size_t ascii = ascii_prefix(bytes);
    out.append(bytes.substr(0, ascii));
    bytes.remove_prefix(ascii);
    if (bytes.empty()) return;
    const Utf8Unit unit = next_utf8_unit(bytes);
    const bool whole = unit.kind == Utf8Unit::Kind::kCharacter;
    out.append(whole ? bytes.substr(0, unit.size) : kReplacementCharacter);
    bytes.remove_prefix(unit.size);
  }
}

void append_code_point(std::string& out, char32_t code_point) {
  const auto c = static_cast<uint32_t>(code_point);
  const auto put = [&out](uint32_t byte) { out += static_cast<char>(byte); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | c >> 6);
    put(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    put(0xE0 | c >> 12);
    put(0x80 | (c >> 6 & 0x3F));
    put(0x80 | (c & 0x3F));
  } else {
    put(0xF0 | c >> 18);
    put(0x80 | (c >> 12 & 0x3F));
    put(0x80 | (c >> 6 & 0x3F));
    put(0x80 | (c & 0x3F));
  }
}

char32_t first_code_point(std::string_view text) {
  const size_t size = next_utf8_unit(text).size;
  const auto lead = static_cast<uint8_t>(text[0]);
  if (size == 1) return lead;
  uint32_t value = lead & (0x7FU >> size);
  for (size_t i = 1; i < size; ++i) value = value << 6 | (static_cast<uint8_t>(text[i]) & 0x3F);
  return static_cast<char32_t>(value);
}

char32_t last_code_point(std::string_view text) {
  size_t begin = text.size() - 1;
  while (begin > 0 && is_continuation(text[begin])) --begin;
  return first_code_point(text.substr(begin));
}

bool is_white_space(char32_t code_point) {
  if ((code_point >= 0x09 && code_point <= 0x0D) || code_point == 0x85) return true;
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code_point))) {
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return true;
    default:
      return false;
  }
}

bool is_word_character(char32_t code_point) {
  if (code_point == 0x200C || code_point == 0x200D) return true;
  // Circled and squared letters are symbols by category and letters by the property Alphabetic.
  if ((code_point >= 0x24B6 && code_point <= 0x24E9) ||
      (code_point >= 0x1F130 && code_point <= 0x1F149) ||
      (code_point >= 0x1F150 && code_point <= 0x1F169) ||
      (code_point >= 0x1F170 && code_point <= 0x1F189)) {
    return true;
  }
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code_point))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
      return true;
    default:
      return false;
  }
}

bool is_numeric(char32_t code_point) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code_point))) {
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
      return true;
    default:
      return false;
  }
}

bool is_punctuation(char32_t code_point) {
  if (code_point < 0x80) {
    return code_point > 0x20 && code_point < 0x7F && !(code_point >= '0' && code_point <= '9') &&
           !(code_point >= 'A' && code_point <= 'Z') && !(code_point >= 'a' && code_point <= 'z');
  }
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code_point))) {
    case UTF8PROC_CATEGORY_PC:
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO:
      return true;
    default:
      return false;
  }
}

bool is_one_character(std::string_view text) {
  return !text.empty() && next_utf8_unit(text).kind == Utf8Unit::Kind::kCharacter &&
         next_utf8_unit(text).size == text.size();
}

}  // namespace anyslot
