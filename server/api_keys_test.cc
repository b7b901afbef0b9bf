#include "api_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/temporary_folder.h"

namespace anyslot::server {
namespace {

using ::testing::HasSubstr;
using testing_support::TemporaryFolder;

TEST(ApiKeys, WithoutKeysEverybodyIsOneTenant) {
  EXPECT_EQ(ApiKeys().tenant(""), "");
  EXPECT_EQ(ApiKeys().tenant("Bearer x"), "");
}

TEST(ApiKeys, KnowsItsKeysAndNoOthers) {
  const TemporaryFolder folder;
  const auto keys = ApiKeys::load(folder.write("keys", "# ours\nalpha\r\n\n beta\n"));
  ASSERT_TRUE(keys.ok());
  const auto alpha = keys->tenant("Bearer alpha");
  const auto beta = keys->tenant("bearer  beta");
  ASSERT_TRUE(alpha && beta);
  EXPECT_NE(*alpha, *beta);
  EXPECT_THAT(*alpha, ::testing::Not(HasSubstr("alpha")));
  for (const char* wrong : {"", "Bearer", "Bearer ", "Bearer alph", "Bearer alphaa", "alpha",
                            "Basic alpha", "Bearer # ours"}) {
    EXPECT_FALSE(keys->tenant(wrong)) << wrong;
  }
}

TEST(ApiKeys, RefusesAFileWithoutKeys) {
  const TemporaryFolder folder;
  EXPECT_EQ(ApiKeys::load(folder.file("none")).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(ApiKeys::load(folder.write("empty", "#\n\n")).status().code(),
            StatusCode::kInvalidArgument);
}

TEST(ApiKeys, SaltsOfTenantsNeverMeet) {
  EXPECT_EQ(tenant_salt("", "s"), "s");
  EXPECT_NE(tenant_salt("a", "s"), tenant_salt("b", "s"));
  EXPECT_NE(tenant_salt("a", ""), tenant_salt("a", "s"));
}

}  // namespace
}  // namespace anyslot::server
