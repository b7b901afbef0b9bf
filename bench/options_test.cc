#include "options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace anyslot::bench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Numbers, AreReadAsAList) {
  EXPECT_THAT(parse_numbers("64,512,2048", 1).value(), ElementsAre(64, 512, 2048));
  EXPECT_THAT(parse_numbers("0", 0).value(), ElementsAre(0));
}

TEST(Numbers, OtherTextIsRefused) {
  for (const char* text : {"", ",", "1,", "1,,2", "1, 2", "x", "-1", "1.5", "2147483648", "0"}) {
    const auto numbers = parse_numbers(text, 1);
    ASSERT_FALSE(numbers.ok()) << text;
    EXPECT_EQ(numbers.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(numbers.status().message(), HasSubstr(std::string("\"") + text + "\""));
  }
}

}  // namespace
}  // namespace anyslot::bench
