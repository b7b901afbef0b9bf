#include "sizes.h"

#include <gtest/gtest.h>

namespace anyslot::cli {
namespace {

TEST(Sizes, ReadsBinaryUnits) {
  const std::pair<const char*, int64_t> cases[] = {{"512MiB", 536870912},
                                                   {"4GiB", 4294967296},
                                                   {"1TiB", 1099511627776},
                                                   {"3KiB", 3072},
                                                   {"1.5GiB", 1610612736},
                                                   {"17", 17},
                                                   {"17B", 17},
                                                   {"0", 0},
                                                   {"2 GiB", 2147483648}};
  for (const auto& [text, bytes] : cases) {
    const Expected<int64_t> size = parse_size(text);
    ASSERT_TRUE(size.ok()) << text;
    EXPECT_EQ(*size, bytes) << text;
  }
}

TEST(Sizes, RefusesWhatIsNoSize) {
  for (const char* text : {"", "MiB", "-1GiB", "4GB", "4G", "lots", "4GiBs", "0x10", "1e3", "nan",
                           "inf", "0.3B", "9000000TiB", "99999999999999999999"}) {
    const Expected<int64_t> size = parse_size(text);
    ASSERT_FALSE(size.ok()) << text;
    EXPECT_EQ(size.status().code(), StatusCode::kInvalidArgument);
    EXPECT_NE(size.status().message().find("512MiB"), std::string::npos) << "the cure is named";
  }
}

TEST(Sizes, WritesWhatPeopleRead) {
  EXPECT_EQ(format_size(0), "0 B");
  EXPECT_EQ(format_size(1023), "1023 B");
  EXPECT_EQ(format_size(536870912), "512 MiB");
  EXPECT_EQ(format_size(1610612736), "1.5 GiB");
}

TEST(Counts, HaveCommasAndAUnit) {
  EXPECT_EQ(count_text(0), "0");
  EXPECT_EQ(count_text(999), "999");
  EXPECT_EQ(count_text(1234567), "1,234,567");
  EXPECT_EQ(count_text(-1234), "-1,234");
  EXPECT_EQ(plural_text(1, "document"), "1 document");
  EXPECT_EQ(plural_text(20, "document"), "20 documents");
}

}  // namespace
}  // namespace anyslot::cli
