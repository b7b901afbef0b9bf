#include "api_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

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

TEST(ApiKeys, PassesOverWhatEditorsLeave) {
  const TemporaryFolder folder;
  const auto keys = ApiKeys::load(folder.write("keys",
                                               "\xef\xbb\xbf"
                                               "alpha\r\n \t \r\n\tbeta \t\r\n  # ours\n"));
  ASSERT_TRUE(keys.ok()) << keys.status().message();
  EXPECT_TRUE(keys->tenant("Bearer alpha"));
  EXPECT_TRUE(keys->tenant("Bearer beta"));
  for (const char* wrong : {"Bearer ", "Bearer \t", "Bearer # ours", "Bearer ours"}) {
    EXPECT_FALSE(keys->tenant(wrong)) << wrong;
  }
  EXPECT_EQ(ApiKeys::load(folder.write("blank", "\xef\xbb\xbf \n\t\n")).status().code(),
            StatusCode::kInvalidArgument);
}

TEST(ApiKeys, RefusesKeysThatNoHeaderCarries) {
  const TemporaryFolder folder;
  for (const std::string& key :
       std::vector<std::string>{"two words", "tab\tbed", std::string("nu\0l", 4),
                                "es\x1b"
                                "c"}) {
    const std::string path = folder.write("keys", "alpha\n\n" + key + "\n");
    const Status status = ApiKeys::load(path).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << key;
    EXPECT_THAT(status.message(), HasSubstr(path + ":3:")) << key;
    EXPECT_THAT(status.message(), ::testing::Not(HasSubstr(key))) << "keys are secret";
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
