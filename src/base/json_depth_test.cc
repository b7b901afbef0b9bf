#include "base/json_depth.h"

#include <gtest/gtest.h>

#include <string>

namespace anyslot {
namespace {

TEST(NestsTooDeep, CountsBracketsOutsideStrings) {
  const std::string open(kMaxJsonDepth, '[');
  const std::string close(kMaxJsonDepth, ']');
  EXPECT_FALSE(nests_too_deep(open + close));
  EXPECT_TRUE(nests_too_deep("{\"a\":" + open + close + "}"));
  EXPECT_FALSE(nests_too_deep("[\"\\\"" + open + open + "\"]"));
  EXPECT_FALSE(nests_too_deep(open + close + open + close));
}

}  // namespace
}  // namespace anyslot
