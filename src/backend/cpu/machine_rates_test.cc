#include "backend/cpu/machine_rates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "backend/cpu/rate_kernels.h"

namespace anyslot::cpu {
namespace {

const RateKernels* kernels_of(const std::string& name) {
  for (const RateKernels* kernels :
       {&kAvx2RateKernels, &kAvx512RateKernels, &kAvx512Bf16RateKernels}) {
    if (kernels->name == name) return kernels;
  }
  return nullptr;
}

// Every sum begins at 1 and loses 2^-21 per product, so the result tells how many were done.
TEST(RateKernels, DoAsManyOperationsAsTheySay) {
  constexpr int64_t kIterations = 3;
  for (const std::string& name : usable_instruction_sets()) {
    const RateKernels* kernels = kernels_of(name);
    ASSERT_NE(kernels, nullptr) << name;
    for (const ArithmeticLoop& loop : {kernels->float32, kernels->bfloat16}) {
      const double products = static_cast<double>(kIterations * loop.operations) / 2;
      const double lanes = name == "avx2" ? 8 : 16;
      const double expected = 12 * lanes - products * std::ldexp(1.0, -21);
      EXPECT_NEAR(loop.run(kIterations), expected, 1e-4) << name;
    }
  }
}

TEST(RateKernels, ReadEveryByte) {
  std::vector<std::byte> data(8192 + 64, std::byte{0});
  for (const std::string& name : usable_instruction_sets()) {
    for (size_t at = 0; at < 8192; at += 8) {
      data[at] = std::byte{1};
      EXPECT_EQ(kernels_of(name)->read(data.data(), 8192), 1U) << name << ", byte " << at;
      data[at] = std::byte{0};
    }
  }
}

TEST(MachineRates, ArePositiveAndNameWhatCannotRun) {
  ThreadPool threads(1);
  const auto rates = measure_machine_rates("", DType::kBFloat16, threads);
  ASSERT_TRUE(rates.ok()) << rates.status().message();
  EXPECT_GT(rates->operations_per_second, 1e8);
  EXPECT_GT(rates->read_bytes_per_second, 1e8);
  const auto unknown = measure_machine_rates("sse9", DType::kFloat32, threads);
  EXPECT_EQ(unknown.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(unknown.status().message(), testing::HasSubstr("sse9"));
}

}  // namespace
}  // namespace anyslot::cpu
