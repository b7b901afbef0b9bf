#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace anyslot {

/// A SHA-256 digest.
struct Digest {
  std::array<uint8_t, 32> bytes{};
  auto operator<=>(const Digest&) const = default;
  std::string hex() const;
  /// The inverse; nullopt for what is not 64 hexadecimal digits in lower case.
  static std::optional<Digest> from_hex(std::string_view hex);
};

struct DigestHash {
  size_t operator()(const Digest& digest) const {
    size_t value;  // a cryptographic hash needs no further mixing
    std::memcpy(&value, digest.bytes.data(), sizeof value);
    return value;
  }
};

/// SHA-256 over fields, each preceded by its length in bytes (uint64, little-endian), so that no
/// two different lists of fields give the same stream.
class DigestBuilder {
 public:
  DigestBuilder();
  ~DigestBuilder();
  DigestBuilder(const DigestBuilder&) = delete;
  DigestBuilder& operator=(const DigestBuilder&) = delete;

  DigestBuilder& add(std::string_view field);
  DigestBuilder& add(const Digest& field);
  DigestBuilder& add(int64_t field);
  DigestBuilder& add(std::span<const int32_t> field);
  /// Ends the digest; the builder is then empty.
  Digest finish();

 private:
  void add_bytes(const void* data, size_t size);
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace anyslot
