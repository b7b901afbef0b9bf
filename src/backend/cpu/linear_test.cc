#include "backend/cpu/linear.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "backend/cpu/cpu_features.h"
#include "backend/cpu/kernel_list.h"

namespace anyslot::cpu {
namespace {

constexpr uint32_t kSeed = 20250112;
constexpr float kUntouched = 12345.0F;

/// A matrix of float32 or bfloat16 and the numbers in it.
class Matrix {
 public:
  Matrix(DType dtype, int64_t rows, int64_t cols, int64_t padding, std::mt19937& random)
      : bytes_(static_cast<size_t>(rows * (cols + padding)) * dtype_size(dtype)) {
    view_ = {bytes_.data(), dtype, rows, cols, cols + padding};
    std::normal_distribution<float> normal;
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < cols + padding; ++c) {
        set(r, c, c < cols ? normal(random) : kUntouched);
      }
    }
  }
  const TensorView& view() const { return view_; }
  float get(int64_t r, int64_t c) const {
    return view_.dtype == DType::kFloat32 ? view_.row_as<float>(r)[c]
                                          : bf16_to_float(view_.row_as<bf16_t>(r)[c]);
  }
  void set(int64_t r, int64_t c, float value) {
    if (view_.dtype == DType::kFloat32) {
      view_.row_as<float>(r)[c] = value;
    } else {
      view_.row_as<bf16_t>(r)[c] = float_to_bf16(value);
    }
  }

 private:
  std::vector<std::byte> bytes_;
  TensorView view_;
};

struct Case {
  std::string name;
  ProductTypes types;
  int num_threads;
};

/// Whole numbers up to 127 times 1/32, the largest among them in each row.
void round_to_int8(Matrix& weight) {
  for (int64_t o = 0; o < weight.view().rows; ++o) {
    for (int64_t i = 0; i < weight.view().cols; ++i) {
      const float number = std::clamp(std::round(weight.get(o, i) * 32), -127.0F, 127.0F);
      weight.set(o, i, (i == o % weight.view().cols ? 127.0F : number) / 32);
    }
  }
}

class Linear : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    auto kernels = choose_kernels("", detect_cpu_features());
    ASSERT_TRUE(kernels.ok()) << kernels.status().message();
    if (GetParam().types.product == DType::kBFloat16 && !detect_cpu_features().avx512_bf16) {
      GTEST_SKIP() << "this machine multiplies no bfloat16";
    }
    threads_ = std::make_unique<ThreadPool>(GetParam().num_threads);
    auto runner = LinearRunner::create(**kernels, *threads_, GetParam().types);
    ASSERT_TRUE(runner.ok()) << runner.status().message();
    runner_ = std::move(*runner);
  }

  DType dtype() const { return GetParam().types.activation; }
  /// Of numbers that can be stored exactly, so that the product has no other error than its own.
  Matrix make_weight(int64_t outs, int64_t ins) {
    Matrix weight(dtype(), outs, ins, 0, random_);
    if (GetParam().types.stored == StoredType::kInt8) round_to_int8(weight);
    return weight;
  }
  std::unique_ptr<LinearWeight> load(const Matrix& weight) {
    const TensorView part = weight.view();
    auto loaded = runner_->load({&part, 1});
    EXPECT_TRUE(loaded.ok()) << loaded.status().message();
    return loaded.ok() ? std::move(*loaded) : nullptr;
  }
  /// Half a step of the 16 bits to which int8 products in bfloat16 round a row.
  double rounding_of_row(const Matrix& x, int64_t row) const {
    if (GetParam().types.stored != StoredType::kInt8 || x.view().rows > kFewRows ||
        GetParam().types.product != DType::kBFloat16) {
      return 0;
    }
    double largest = 0;
    for (int64_t i = 0; i < x.view().cols; ++i) {
      largest = std::max(largest, std::abs(double{x.get(row, i)}));
    }
    return largest / 32767 / 2;
  }
  void check(const Matrix& weight, const LinearWeight& loaded, int64_t rows, bool accumulate,
             int64_t x_padding);

  std::mt19937 random_{kSeed};
  std::unique_ptr<ThreadPool> threads_;
  std::unique_ptr<LinearRunner> runner_;
};

void Linear::check(const Matrix& weight, const LinearWeight& loaded, int64_t rows, bool accumulate,
                   int64_t x_padding) {
  constexpr int64_t kPadding = 3;
  const int64_t outs = weight.view().rows;
  const int64_t ins = weight.view().cols;
  SCOPED_TRACE(testing::Message() << rows << " rows, " << ins << " x " << outs << ", seed "
                                  << kSeed);
  const Matrix x(dtype(), rows, ins, x_padding, random_);
  const Matrix out(DType::kFloat32, rows, outs, kPadding, random_);
  std::vector<float> before;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t o = 0; o < outs; ++o) before.push_back(out.get(r, o));
  }
  const Status status =
      runner_->run(static_cast<const PackedWeight&>(loaded), x.view(), out.view(), accumulate);
  ASSERT_TRUE(status.ok()) << status.message();
  int failures = 0;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t o = 0; o < outs; ++o) {
      double expected = accumulate ? before[r * outs + o] : 0.0;
      double size = std::abs(expected);
      double weights = 0;
      for (int64_t i = 0; i < ins; ++i) {
        const double product = double{x.get(r, i)} * weight.get(o, i);
        expected += product;
        size += std::abs(product);
        weights += std::abs(weight.get(o, i));
      }
      const double error = std::abs(out.get(r, o) - expected);
      if (!(error <= 1e-5 * size + rounding_of_row(x, r) * weights)) ++failures;
    }
    for (int64_t c = outs; c < outs + kPadding; ++c) {
      if (out.get(r, c) != kUntouched) ++failures;
    }
  }
  EXPECT_EQ(failures, 0);
}

TEST_P(Linear, AnyNumberOfRows) {
  const Matrix weight = make_weight(200, 96);
  const auto loaded = load(weight);
  ASSERT_TRUE(loaded);
  for (int64_t rows = 1; rows <= 70; ++rows) check(weight, *loaded, rows, rows % 2 == 0, 0);
  for (const int64_t rows : {100, 127, 128, 255, 256, 257, 300, 511, 512, 513, 700}) {
    check(weight, *loaded, rows, rows % 2 == 0, 0);
  }
}

TEST_P(Linear, AnyShape) {
  for (const int64_t ins : {1, 3, 31, 64, 129, 576}) {
    for (const int64_t outs : {1, 17, 64, 65, 320, 1000}) {
      const Matrix weight = make_weight(outs, ins);
      const auto loaded = load(weight);
      ASSERT_TRUE(loaded);
      for (const int64_t rows : {1, 5, 33}) check(weight, *loaded, rows, true, 0);
    }
  }
}

TEST_P(Linear, RowsOfXMayStandApart) {
  const Matrix weight = make_weight(130, 48);
  const auto loaded = load(weight);
  ASSERT_TRUE(loaded);
  for (const int64_t rows : {1, 7, 64, 300}) check(weight, *loaded, rows, false, 5);
}

TEST_P(Linear, NoRowsAreNoError) {
  const Matrix weight = make_weight(16, 16);
  const auto loaded = load(weight);
  ASSERT_TRUE(loaded);
  check(weight, *loaded, 0, false, 0);
}

// Chunks overlap where rows do not divide evenly: no sum may be added twice, whichever thread is
// first.
TEST_P(Linear, EachSumIsAddedOnce) {
  constexpr int64_t kRows = 263;
  constexpr int64_t kOuts = 640;
  constexpr int kTimes = 50;
  Matrix weight(dtype(), kOuts, 32, 0, random_);
  for (int64_t o = 0; o < kOuts; ++o) {
    for (int64_t i = 0; i < 32; ++i) weight.set(o, i, i == o % 32 ? 1.0F : 0.0F);
  }
  Matrix x(dtype(), kRows, 32, 0, random_);
  for (int64_t r = 0; r < kRows; ++r) {
    for (int64_t i = 0; i < 32; ++i) x.set(r, i, static_cast<float>((r + i) % 7));
  }
  Matrix out(DType::kFloat32, kRows, kOuts, 0, random_);
  for (int64_t r = 0; r < kRows; ++r) {
    for (int64_t o = 0; o < kOuts; ++o) out.set(r, o, 0.0F);
  }
  const auto loaded = load(weight);
  ASSERT_TRUE(loaded);
  threads_->begin_step();
  for (int i = 0; i < kTimes; ++i) {
    ASSERT_TRUE(
        runner_->run(static_cast<const PackedWeight&>(*loaded), x.view(), out.view(), true).ok());
  }
  threads_->end_step();
  int failures = 0;
  for (int64_t r = 0; r < kRows; ++r) {
    for (int64_t o = 0; o < kOuts; ++o) {
      const auto expected = static_cast<float>(kTimes * ((r + o % 32) % 7));
      if (!(std::abs(out.get(r, o) - expected) < 0.5F)) ++failures;
    }
  }
  EXPECT_EQ(failures, 0);
}

TEST_P(Linear, BrokenWeightsAreRefused) {
  const Matrix narrow(dtype(), 4, 8, 0, random_);
  const Matrix wide(dtype(), 4, 9, 0, random_);
  const std::vector<TensorView> parts = {narrow.view(), wide.view()};
  EXPECT_EQ(runner_->load(parts).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(runner_->load({}).status().code(), StatusCode::kInvalidArgument);
}

constexpr ProductTypes kFloat32{DType::kFloat32, StoredType::kFloat32, DType::kFloat32};
constexpr ProductTypes kBFloat16{DType::kBFloat16, StoredType::kBFloat16, DType::kBFloat16};
constexpr ProductTypes kWidened{DType::kBFloat16, StoredType::kBFloat16, DType::kFloat32};
constexpr ProductTypes kInt8{DType::kBFloat16, StoredType::kInt8, DType::kBFloat16};
constexpr ProductTypes kInt8Widened{DType::kBFloat16, StoredType::kInt8, DType::kFloat32};
constexpr ProductTypes kInt8Float32{DType::kFloat32, StoredType::kInt8, DType::kFloat32};

INSTANTIATE_TEST_SUITE_P(
    Types, Linear,
    testing::Values(Case{"float32", kFloat32, 2}, Case{"bfloat16", kBFloat16, 2},
                    Case{"bfloat16_one_thread", kBFloat16, 1},
                    Case{"bfloat16_five_threads", kBFloat16, 5}, Case{"widened", kWidened, 2},
                    Case{"int8", kInt8, 2}, Case{"int8_one_thread", kInt8, 1},
                    Case{"int8_widened", kInt8Widened, 2}, Case{"int8_float32", kInt8Float32, 2}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace anyslot::cpu
