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

TEST(Float16, EveryNumberComesBack) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<fp16_t>(bits);
    const float value = fp16_to_float(half);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(fp16_to_float(float_to_fp16(value)))) << bits;
    } else {
      EXPECT_EQ(float_to_fp16(value), half);
    }
  }
}

TEST(Float16, RoundsToNearestEven) {
  for (uint32_t bits = 0; bits < 0x7bff; ++bits) {
    const auto low = static_cast<fp16_t>(bits);
    const auto high = static_cast<fp16_t>(bits + 1);
    const float middle = (fp16_to_float(low) + fp16_to_float(high)) / 2;  // exact in float32
    EXPECT_EQ(float_to_fp16(middle), bits % 2 == 0 ? low : high);
    EXPECT_EQ(float_to_fp16(std::nextafter(middle, 0.0F)), low);
    EXPECT_EQ(float_to_fp16(-std::nextafter(middle, 1e9F)), high | 0x8000);
  }
}

TEST(Float16, WhatIsTooLargeBecomesInfinite) {
  EXPECT_EQ(float_to_fp16(std::nextafter(65520.0F, 0.0F)), 0x7bff);
  EXPECT_EQ(float_to_fp16(65520.0F), 0x7c00);
  EXPECT_EQ(float_to_fp16(-1e30F), 0xfc00);
  EXPECT_EQ(float_to_fp16(std::numeric_limits<float>::infinity()), 0x7c00);
}

TEST(Elements, AreStoredInTheTypeAsked) {
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kFloat16}) {
    float room[2] = {0.0F, 0.0F};
    store_element(room, dtype, 1, 1.5F);
    EXPECT_EQ(load_element(room, dtype, 1), 1.5F) << dtype_name(dtype);
    EXPECT_EQ(load_element(room, dtype, 0), 0.0F) << dtype_name(dtype);
  }
}

TEST(Fp8E4M3, ReadsNormalsSubnormalsAndNan) {
  EXPECT_EQ(fp8_e4m3_to_float(0x38), 1.0F);
  EXPECT_EQ(fp8_e4m3_to_float(0xc0), -2.0F);
  EXPECT_EQ(fp8_e4m3_to_float(0x7e), 448.0F);
  EXPECT_EQ(fp8_e4m3_to_float(0x08), 0x1p-6F);
  EXPECT_EQ(fp8_e4m3_to_float(0x07), 0x7p-9F);
  EXPECT_EQ(fp8_e4m3_to_float(0x81), -0x1p-9F);
  EXPECT_TRUE(std::isnan(fp8_e4m3_to_float(0x7f)));
  EXPECT_TRUE(std::isnan(fp8_e4m3_to_float(0xff)));
}

TEST(Fp8E4M3, EveryNumberComesBack) {
  for (int bits = 0; bits < 0x100; ++bits) {
    const auto code = static_cast<fp8_e4m3_t>(bits);
    EXPECT_EQ(float_to_fp8_e4m3(fp8_e4m3_to_float(code)), code);
  }
}

TEST(Fp8E4M3, RoundsToNearestEven) {
  for (int bits = 0; bits < 0x7e; ++bits) {
    const auto low = static_cast<fp8_e4m3_t>(bits);
    const auto high = static_cast<fp8_e4m3_t>(bits + 1);
    const float middle = (fp8_e4m3_to_float(low) + fp8_e4m3_to_float(high)) / 2;
    EXPECT_EQ(float_to_fp8_e4m3(middle), bits % 2 == 0 ? low : high);
    EXPECT_EQ(float_to_fp8_e4m3(std::nextafter(middle, 0.0F)), low);
    EXPECT_EQ(float_to_fp8_e4m3(-std::nextafter(middle, 1e9F)), high | 0x80);
  }
}

TEST(Fp8E4M3, WhatIsTooLargeBecomesTheLargest) {
  EXPECT_EQ(float_to_fp8_e4m3(1e9F), 0x7e);
  EXPECT_EQ(float_to_fp8_e4m3(464.0F), 0x7e);
  EXPECT_EQ(float_to_fp8_e4m3(-std::numeric_limits<float>::infinity()), 0xfe);
}

}  // namespace
}  // namespace anyslot
