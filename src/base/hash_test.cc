#include "base/hash.h"

#include <gtest/gtest.h>

#include <vector>

namespace anyslot {
namespace {

TEST(DigestBuilder, PrefixesEachFieldWithItsLength) {
  // printf '\3\0\0\0\0\0\0\0abc' | sha256sum
  EXPECT_EQ(DigestBuilder().add("abc").finish().hex(),
            "ce91dc5eec0139adf091900d225971d6ad246a845bad791b5693a9d0d55dd391");
}

TEST(DigestBuilder, FieldBordersMatter) {
  EXPECT_NE(DigestBuilder().add("ab").add("c").finish(),
            DigestBuilder().add("a").add("bc").finish());
  const std::vector<int32_t> ids{1, 2, 3};
  const std::span<const int32_t> all(ids);
  EXPECT_NE(DigestBuilder().add(all.first(2)).add(all.subspan(2)).finish(),
            DigestBuilder().add(all.first(1)).add(all.subspan(1)).finish());
}

TEST(Digest, IsReadBackFromItsDigits) {
  const Digest digest = DigestBuilder().add("abc").finish();
  EXPECT_EQ(Digest::from_hex(digest.hex()), digest);
  EXPECT_FALSE(Digest::from_hex("").has_value());
  EXPECT_FALSE(Digest::from_hex(digest.hex() + "0").has_value());
  EXPECT_FALSE(Digest::from_hex(digest.hex().substr(1)).has_value());
  EXPECT_FALSE(Digest::from_hex(digest.hex().replace(5, 1, "g")).has_value());
  EXPECT_FALSE(Digest::from_hex(digest.hex().replace(5, 1, "A")).has_value());
}

TEST(DigestBuilder, IsEmptyAfterFinish) {
  DigestBuilder builder;
  const Digest first = builder.add("x").finish();
  EXPECT_EQ(builder.add("x").finish(), first);
}

}  // namespace
}  // namespace anyslot
