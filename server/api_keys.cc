#include "api_keys.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <algorithm>
#include <fstream>
#include <utility>

namespace anyslot::server {

namespace {

constexpr std::string_view kScheme = "Bearer ";
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
constexpr std::string_view kBlanks = " \t\r\v\f";

std::string hexadecimal(const std::array<unsigned char, 32>& bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : bytes) {
    text += kDigits[byte >> 4U];
    text += kDigits[byte & 15U];
  }
  return text;
}

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
    if (lower(a[i]) != lower(b[i])) return false;
  }
  return true;
}

std::string_view trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  return text.substr(0, text.find_last_not_of(kBlanks) + 1);
}

bool is_blank_or_control(unsigned char c) { return c <= ' ' || c == 0x7f; }

}  // namespace

ApiKeys::Digest ApiKeys::digest_of(std::string_view domain, std::string_view key) {
  const std::string text = std::string(domain) + '\0' + std::string(key);
  Digest digest{};
  EVP_Digest(text.data(), text.size(), digest.data(), nullptr, EVP_sha256(), nullptr);
  return digest;
}

Expected<ApiKeys> ApiKeys::load(const std::string& path) {
  std::ifstream file(path);
  if (!file) return not_found(path + ": the file of API keys cannot be read");
  ApiKeys keys;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    std::string_view key = line;
    if (++number == 1 && key.starts_with(kByteOrderMark)) key.remove_prefix(kByteOrderMark.size());
    key = trimmed(key);
    if (key.empty() || key.front() == '#') continue;
    if (std::ranges::any_of(key, is_blank_or_control)) {
      return invalid_argument(path + ":" + std::to_string(number) +
                              ": the API key holds blanks or control characters; write one key per "
                              "line, and comments on lines of their own that begin with #");
    }
    keys.keys_.push_back({digest_of("key", key), hexadecimal(digest_of("tenant", key))});
  }
  if (file.bad()) return not_found(path + ": the file of API keys cannot be read");
  if (keys.keys_.empty()) {
    return invalid_argument(path + ": holds no API key; write one per line");
  }
  return keys;
}

std::optional<std::string> ApiKeys::tenant(std::string_view authorization) const {
  if (keys_.empty()) return std::string();
  if (!equal_ignoring_case(authorization.substr(0, kScheme.size()), kScheme)) return std::nullopt;
  const Digest given = digest_of("key", trimmed(authorization.substr(kScheme.size())));
  const Key* found = nullptr;
  for (const Key& key : keys_) {  // all of them, so that time tells nothing
    if (CRYPTO_memcmp(key.digest.data(), given.data(), given.size()) == 0) found = &key;
  }
  if (found == nullptr) return std::nullopt;
  return found->tenant;
}

std::string tenant_salt(const std::string& tenant, const std::string& cache_salt) {
  return tenant.empty() ? cache_salt : tenant + "|" + cache_salt;
}

}  // namespace anyslot::server
