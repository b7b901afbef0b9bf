#include "base/hash.h"

#include <openssl/evp.h>

#include <bit>
#include <stdexcept>

namespace anyslot {

static_assert(std::endian::native == std::endian::little,
              "digests are defined over little-endian fields");

namespace {

constexpr std::string_view kDigits = "0123456789abcdef";

void check(int result) {
  if (result != 1) throw std::runtime_error("SHA-256 is not available in this OpenSSL");
}

}  // namespace

struct DigestBuilder::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { EVP_MD_CTX_free(context); }
};

DigestBuilder::DigestBuilder() : state_(std::make_unique<State>()) {
  check(EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr));
}

DigestBuilder::~DigestBuilder() = default;

void DigestBuilder::add_bytes(const void* data, size_t size) {
  const uint64_t length = size;
  check(EVP_DigestUpdate(state_->context, &length, sizeof length));
  check(EVP_DigestUpdate(state_->context, data, size));
}

DigestBuilder& DigestBuilder::add(std::string_view field) {
  add_bytes(field.data(), field.size());
  return *this;
}

DigestBuilder& DigestBuilder::add(const Digest& field) {
  add_bytes(field.bytes.data(), field.bytes.size());
  return *this;
}

DigestBuilder& DigestBuilder::add(int64_t field) {
  add_bytes(&field, sizeof field);
  return *this;
}

DigestBuilder& DigestBuilder::add(std::span<const int32_t> field) {
  add_bytes(field.data(), field.size_bytes());
  return *this;
}

Digest DigestBuilder::finish() {
  Digest digest;
  unsigned size = 0;
  check(EVP_DigestFinal_ex(state_->context, digest.bytes.data(), &size));
  check(EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr));
  return digest;
}

std::string Digest::hex() const {
  std::string text;
  text.reserve(2 * bytes.size());
  for (const uint8_t byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

std::optional<Digest> Digest::from_hex(std::string_view hex) {
  Digest digest;
  if (hex.size() != 2 * digest.bytes.size()) return std::nullopt;
  for (size_t i = 0; i < hex.size(); ++i) {
    const size_t value = kDigits.find(hex[i]);
    if (value == std::string_view::npos) return std::nullopt;
    uint8_t& byte = digest.bytes[i / 2];
    byte = static_cast<uint8_t>(byte << 4 | value);
  }
  return digest;
}

}  // namespace anyslot
