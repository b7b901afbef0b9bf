#include "base/dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace anyslot {
namespace {

TEST(BFloat16, RoundsToNearestEven) {
  EXPECT_EQ(bf16_to_float(float_to_bf16(1.0F)), 1.0F);
  EXPECT_EQ(bf16_to_float(float_to_bf16(1.0F + 0x1p-8F)),
            1.0F);  // a tie goes to the even neighbour
  EXPECT_EQ(bf16_to_float(float_to_bf16(1.0F + 0x3p-8F)), 1.0F + 0x1p-6F);
  EXPECT_EQ(bf16_to_float(float_to_bf16(1.0F + 0x1.8p-8F)), 1.0F + 0x1p-7F);
}

TEST(BFloat16, KeepsInfinityAndNan) {
  EXPECT_TRUE(std::isinf(bf16_to_float(float_to_bf16(std::numeric_limits<float>::infinity()))));
  EXPECT_TRUE(std::isinf(bf16_to_float(float_to_bf16(std::numeric_limits<float>::max()))));
  EXPECT_TRUE(std::isnan(bf16_to_float(float_to_bf16(std::numeric_limits<float>::quiet_NaN()))));
}

TEST(Float16, ReadsNormalsSubnormalsAndSpecials) {
  EXPECT_EQ(fp16_to_float(0x3c00), 1.0F);
  EXPECT_EQ(fp16_to_float(0xc000), -2.0F);
  EXPECT_EQ(fp16_to_float(0x7bff), 65504.0F);
  EXPECT_EQ(fp16_to_float(0x0001), 0x1p-24F);
  EXPECT_EQ(fp16_to_float(0x83ff), -0x3ffp-24F);
  EXPECT_TRUE(std::isinf(fp16_to_float(0x7c00)));
  EXPECT_TRUE(std::isnan(fp16_to_float(0x7e00)));
}

}  // namespace
}  // namespace anyslot
