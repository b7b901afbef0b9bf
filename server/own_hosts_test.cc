#include "own_hosts.h"

#include <gtest/gtest.h>

namespace anyslot::server {
namespace {

TEST(OwnHosts, KnowsTheNamesOfThisMachineAndNoOthers) {
  const OwnHosts hosts("My-Box");
  for (const char* own : {"localhost", "LocalHost:8080", "localhost.", "api.localhost", "127.0.0.1",
                          "127.8.9.1:80", "[::1]", "[::1]:8080", "my-box:1", "my-box"}) {
    EXPECT_TRUE(hosts.has(own)) << own;
  }
  for (const char* foreign : {"", "evil.example", "localhost.evil.example", "evillocalhost",
                              "127.0.0.1.evil.example", "192.168.1.1", "[::2]:80", "[", "::1x"}) {
    EXPECT_FALSE(hosts.has(foreign)) << foreign;
  }
}

TEST(OwnHosts, TakesAnyWhereNoneIsGiven) { EXPECT_TRUE(OwnHosts().has("any.example")); }

}  // namespace
}  // namespace anyslot::server
