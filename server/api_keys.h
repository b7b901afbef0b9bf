#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "anyslot/status.h"

namespace anyslot::server {

/// The keys that clients may use, kept as digests.
class ApiKeys {
 public:
  /// No keys: everybody may ask, as one tenant.
  ApiKeys() = default;
  /// One key per line, without the blanks around it; empty lines and those that begin with # are
  /// passed over. Fails with kNotFound for a file that cannot be read, with kInvalidArgument for
  /// one without keys and for a key that no header can carry, as it holds blanks or control
  /// characters.
  static Expected<ApiKeys> load(const std::string& path);

  /// Whether a client needs a key.
  bool required() const { return !keys_.empty(); }

  /// The tenant that an Authorization header ("Bearer KEY") proves, in a time that does not depend
  /// on how much of a key is right; none when it proves none.
  std::optional<std::string> tenant(std::string_view authorization) const;

 private:
  using Digest = std::array<unsigned char, 32>;  // SHA-256
  static Digest digest_of(std::string_view domain, std::string_view key);

  struct Key {
    Digest digest;
    std::string tenant;
  };
  std::vector<Key> keys_;
};

/// The salt of a request: it tells tenants apart whatever `cache_salt` they give.
std::string tenant_salt(const std::string& tenant, const std::string& cache_salt);

}  // namespace anyslot::server
