#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace anyslot {

/// The byte-level alphabet of GPT-2 (Radford et al. 2019): every byte is written as one printable
/// character, so that a vocabulary of bytes can be stored as text.
char32_t byte_to_alphabet(uint8_t byte);

/// The bytes that `token` stands for, or nothing when it has a character outside the alphabet.
/// `token` must be valid UTF-8.
std::optional<std::string> alphabet_to_bytes(std::string_view token);

}  // namespace anyslot
