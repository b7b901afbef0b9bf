#include <cmath>
#include <cstdint>
#include <vector>

#include "backend/ops_test_support.h"

namespace anyslot::ops_test {
namespace {

constexpr double kFloatError = 1e-5;  // of float32 arithmetic, relative

/// Rows with the given token ids, of which every third is sampled.
StepPlan step_of_tokens(const std::vector<int32_t>& tokens) {
  StepPlan step;
  for (size_t r = 0; r < tokens.size(); ++r) {
    step.rows.push_back({tokens[r], static_cast<int64_t>(r), 0, 0, 0, r % 3 == 1});
  }
  step.sequences.push_back({0, static_cast<int32_t>(tokens.size()), 0, 0});
  return step;
}

class DenseOps : public OpsTest {
 protected:
  void check_linear(int64_t rows, std::vector<int64_t> parts, int64_t in_features, bool accumulate);
};

TEST_P(DenseOps, EmbedTakesTheRowsOfTheTable) {
  constexpr int64_t kVocab = 11;
  constexpr int64_t kHidden = 37;
  const std::vector<int32_t> tokens = {3, 0, 10, 3, 7};
  const StepPlan step = step_of_tokens(tokens);
  for (const DType table_type : {DType::kFloat32, DType::kBFloat16}) {
    const std::vector<float> values = rounded(random_.normal(kVocab * kHidden), table_type);
    const Tensor table(oracle(), kVocab, kHidden, table_type, values);
    const Tensor out(backend(), 5, kHidden, DType::kFloat32);
    ASSERT_OK(backend().begin_step(step, {}));
    ASSERT_OK(backend().embed(table, out));
    ASSERT_OK(backend().end_step());
    std::vector<float> expected;
    for (const int32_t token : tokens) {
      expected.insert(expected.end(), values.begin() + token * kHidden,
                      values.begin() + (token + 1) * kHidden);
    }
    EXPECT_EQ(out.values(), expected);
  }
}

TEST_P(DenseOps, EmbedReadsHalfPrecision) {
  const uint16_t one_and_a_half[] = {0x3c00, 0x3e00};
  const TensorView table{const_cast<uint16_t*>(one_and_a_half), DType::kFloat16, 2, 1, 1};
  const StepPlan step = step_of_tokens({1, 0});
  const Tensor out(backend(), 2, 1, DType::kFloat32);
  ASSERT_OK(backend().begin_step(step, {}));
  ASSERT_OK(backend().embed(table, out));
  ASSERT_OK(backend().end_step());
  EXPECT_EQ(out.values(), (std::vector<float>{1.5F, 1.0F}));
}

TEST_P(DenseOps, RmsNorm) {
  for (const int64_t rows : {1, 3, 70}) {
    for (const int64_t cols : {1, 16, 100, 576, 2049}) {
      SCOPED_TRACE(testing::Message() << rows << " x " << cols);
      std::vector<float> x = random_.normal(rows * cols);
      for (int64_t c = 0; c < cols; ++c) x[c] *= 1000;  // rows of different sizes
      const std::vector<float> weight = random_.normal(cols);
      const Tensor out(backend(), rows, cols, dtype());
      const Tensor expected(oracle(), rows, cols, DType::kFloat32);
      ASSERT_OK(backend().rms_norm(Tensor(backend(), rows, cols, DType::kFloat32, x), weight.data(),
                                   1e-5F, out));
      ASSERT_OK(oracle().rms_norm(Tensor(oracle(), rows, cols, DType::kFloat32, x), weight.data(),
                                  1e-5F, expected));
      expect_near(out.values(), expected.values(), kFloatError + rounding_of(dtype()),
                  underflow_of(dtype()));
    }
  }
}

TEST_P(DenseOps, RmsNormOfZerosIsZero) {
  const std::vector<float> weight(40, 1.0F);
  const Tensor out(backend(), 2, 40, dtype(), std::vector<float>(80, 7.0F));
  ASSERT_OK(
      backend().rms_norm(Tensor(backend(), 2, 40, DType::kFloat32), weight.data(), 1e-6F, out));
  EXPECT_EQ(out.values(), std::vector<float>(80, 0.0F));
}

TEST_P(DenseOps, RmsNormOfParts) {
  for (const int64_t part : {1, 16, 20, 128}) {
    SCOPED_TRACE(testing::Message() << "parts of " << part);
    const std::vector<float> x = random_.normal(5 * 3 * part);
    const std::vector<float> weight = random_.normal(part);
    const Tensor out(backend(), 5, 3 * part, DType::kFloat32, x, 7);
    ASSERT_OK(backend().rms_norm_parts(out, weight, 1e-5F));
    const Tensor expected(oracle(), 15, part, DType::kFloat32);
    ASSERT_OK(oracle().rms_norm(Tensor(oracle(), 15, part, DType::kFloat32, x), weight.data(),
                                1e-5F, expected));
    expect_near(out.values(), expected.values(), kFloatError, 1e-7);
  }
  const std::vector<float> weight(16, 1.0F);
  EXPECT_EQ(
      backend().rms_norm_parts(Tensor(backend(), 2, 40, DType::kFloat32), weight, 1e-5F).code(),
      StatusCode::kInvalidArgument);
}

TEST_P(DenseOps, AddBiasScaleAndAddScaled) {
  constexpr int64_t kCols = 100;
  const std::vector<float> x = random_.normal(7 * kCols);
  const std::vector<float> y = random_.normal(7 * kCols);
  const std::vector<float> bias = random_.normal(kCols);
  std::vector<float> biased;
  std::vector<float> scaled;
  std::vector<float> sum;
  for (size_t i = 0; i < x.size(); ++i) {
    biased.push_back(x[i] + bias[i % kCols]);
    scaled.push_back(3.0F * x[i]);
    sum.push_back(y[i] + 0.25F * x[i]);
  }
  const Tensor in(backend(), 7, kCols, DType::kFloat32, x, 5);
  const Tensor activation(backend(), 7, kCols, dtype());
  ASSERT_OK(backend().scale(in, 3.0F, activation));
  expect_near(activation.values(), scaled, rounding_of(dtype()), underflow_of(dtype()));
  const Tensor target(backend(), 7, kCols, DType::kFloat32, y, 3);
  ASSERT_OK(backend().add_scaled(in, 0.25F, target));
  expect_near(target.values(), sum, kFloatError, 1e-6);
  const Tensor with_bias(backend(), 7, kCols, DType::kFloat32, x, 5);
  ASSERT_OK(backend().add_bias(with_bias, bias));
  EXPECT_EQ(with_bias.values(), biased);
  ASSERT_OK(backend().scale(in, 3.0F, in));
  EXPECT_EQ(in.values(), scaled);

  EXPECT_EQ(backend().add_bias(in, std::span(bias).first(99)).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(backend().scale(in, 1.0F, Tensor(backend(), 6, kCols, dtype())).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(backend().add_scaled(in, 1.0F, Tensor(backend(), 7, 99, DType::kFloat32)).code(),
            StatusCode::kInvalidArgument);
}

void DenseOps::check_linear(int64_t rows, std::vector<int64_t> parts, int64_t in_features,
                            bool accumulate) {
  SCOPED_TRACE(testing::Message() << rows << " rows, " << parts.size() << " parts, first "
                                  << parts[0] << " x " << in_features);
  int64_t out_features = 0;
  for (const int64_t part : parts) out_features += part;
  const std::vector<float> w = rounded(random_.normal(out_features * in_features), dtype());
  const std::vector<float> x = rounded(random_.normal(rows * in_features), dtype());
  const std::vector<float> before = random_.normal(rows * out_features);

  std::vector<Tensor> tensors;
  std::vector<TensorView> views;
  const float* part_values = w.data();
  for (size_t p = 0; p < parts.size(); ++p) {
    const auto count = static_cast<size_t>(parts[p] * in_features);
    const DType part_type = p % 2 == 0 ? dtype() : DType::kFloat32;
    tensors.emplace_back(oracle(), parts[p], in_features, part_type, std::span(part_values, count));
    views.push_back(tensors.back());
    part_values += count;
  }
  auto weight = backend().load_linear(views);
  ASSERT_TRUE(weight.ok()) << weight.status().message();
  EXPECT_EQ((*weight)->out_features(), out_features);
  EXPECT_EQ((*weight)->in_features(), in_features);

  constexpr int64_t kPadding = 16;  // a product may be a column range of a wider matrix
  const Tensor out(backend(), rows, out_features, DType::kFloat32, before, kPadding);
  ASSERT_OK(backend().linear(**weight, Tensor(backend(), rows, in_features, dtype(), x), out,
                             accumulate));
  std::vector<float> expected;
  std::vector<float> bounds;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t o = 0; o < out_features; ++o) {
      double sum = accumulate ? before[r * out_features + o] : 0.0;
      double magnitude = std::abs(sum);
      for (int64_t i = 0; i < in_features; ++i) {
        const double product = double{x[r * in_features + i]} * w[o * in_features + i];
        sum += product;
        magnitude += std::abs(product);
      }
      expected.push_back(static_cast<float>(sum));
      bounds.push_back(static_cast<float>(kFloatError * magnitude));
    }
  }
  expect_within(out.values(), expected, bounds);
}

TEST_P(DenseOps, Linear) {
  for (const int64_t rows : {1, 2, 5, 16, 33}) check_linear(rows, {64}, 64, false);
  check_linear(1, {1}, 1, false);
  check_linear(3, {33}, 100, false);
  check_linear(7, {129}, 257, true);
  check_linear(64, {96}, 160, true);
}

TEST_P(DenseOps, LinearOfStackedParts) {
  check_linear(1, {64, 16, 16}, 64, false);
  check_linear(19, {48, 7, 25}, 80, true);
}

TEST_P(DenseOps, WeightsAreRoundedToTheComputeType) {
  const std::vector<float> w = {1.0F + std::ldexp(1.0F, -12)};
  const Tensor part(oracle(), 1, 1, DType::kFloat32, w);
  auto weight = backend().load_linear(std::vector<TensorView>{part});
  ASSERT_TRUE(weight.ok()) << weight.status().message();
  const Tensor out(backend(), 1, 1, DType::kFloat32);
  const std::vector<float> one = {1.0F};
  ASSERT_OK(backend().linear(**weight, Tensor(backend(), 1, 1, dtype(), one), out, false));
  EXPECT_EQ(out.values(), rounded(w, dtype()));
}

TEST_P(DenseOps, GatedSilu) {
  for (const int64_t rows : {1, 3, 40}) {
    for (const int64_t cols : {1, 16, 51, 333}) {
      SCOPED_TRACE(testing::Message() << rows << " x " << cols);
      std::vector<float> gate_up = random_.normal(rows * 2 * cols);
      for (float& value : gate_up) value *= 4;
      gate_up[0] = -100;  // exp(100) does not fit in float32
      const Tensor out(backend(), rows, cols, dtype());
      const Tensor expected(oracle(), rows, cols, DType::kFloat32);
      ASSERT_OK(backend().gated(Activation::kSilu,
                                Tensor(backend(), rows, 2 * cols, DType::kFloat32, gate_up), out));
      ASSERT_OK(oracle().gated(
          Activation::kSilu, Tensor(oracle(), rows, 2 * cols, DType::kFloat32, gate_up), expected));
      expect_near(out.values(), expected.values(), kFloatError + rounding_of(dtype()), 1e-6);
    }
  }
}

TEST_P(DenseOps, GatedGelu) {
  for (const int64_t cols : {1, 16, 51, 333}) {
    SCOPED_TRACE(testing::Message() << cols);
    std::vector<float> gate_up = random_.normal(3 * 2 * cols);
    for (float& value : gate_up) value *= 4;
    gate_up[0] = -100;
    gate_up[2 * cols] = 100;
    std::vector<float> expected;
    for (int64_t i = 0; i < 3 * cols; ++i) {
      const double x = gate_up[i / cols * 2 * cols + i % cols];
      const double y = 0.7978845608028654 * (x + 0.044715 * x * x * x);
      const double gelu = x * (1 + std::tanh(y)) / 2;
      expected.push_back(static_cast<float>(gelu * gate_up[i / cols * 2 * cols + cols + i % cols]));
    }
    const Tensor out(backend(), 3, cols, dtype());
    ASSERT_OK(backend().gated(Activation::kGeluTanh,
                              Tensor(backend(), 3, 2 * cols, DType::kFloat32, gate_up), out));
    expect_near(out.values(), expected, kFloatError + rounding_of(dtype()), 1e-5);
  }
}

TEST_P(DenseOps, SoftCap) {
  constexpr int64_t kCols = 101;
  std::vector<float> x = random_.normal(3 * kCols);
  for (int64_t c = 0; c < kCols; ++c) {
    x[c] *= 1e-4F;
    x[kCols + c] *= 20;
    x[2 * kCols + c] *= 1e6F;
  }
  std::vector<float> expected;
  for (const float value : x) expected.push_back(static_cast<float>(30 * std::tanh(value / 30.0)));
  const Tensor capped(backend(), 3, kCols, DType::kFloat32, x, 5);
  ASSERT_OK(backend().soft_cap(capped, 30));
  expect_near(capped.values(), expected, 1e-6, 0);
  EXPECT_EQ(backend().soft_cap(capped, 0).code(), StatusCode::kInvalidArgument);
}

TEST_P(DenseOps, GatherSampledTakesTheSampledRows) {
  const StepPlan step = step_of_tokens(std::vector<int32_t>(8, 0));
  const std::vector<float> x = random_.normal(8 * 29);
  const Tensor out(backend(), 3, 29, DType::kFloat32);
  ASSERT_OK(backend().begin_step(step, {}));
  ASSERT_OK(backend().gather_sampled(Tensor(backend(), 8, 29, DType::kFloat32, x), out));
  ASSERT_OK(backend().end_step());
  std::vector<float> expected;
  for (const int row : {1, 4, 7}) {
    expected.insert(expected.end(), x.begin() + row * 29, x.begin() + (row + 1) * 29);
  }
  EXPECT_EQ(out.values(), expected);
}

TEST_P(DenseOps, DownloadSkipsThePadding) {
  const std::vector<float> x = random_.normal(6 * 19);
  std::vector<float> host(x.size());
  ASSERT_OK(backend().download(Tensor(backend(), 6, 19, DType::kFloat32, x, 13), host));
  EXPECT_EQ(host, x);
}

TEST_P(DenseOps, AStepWithoutRowsIsNoError) {
  constexpr int64_t kCols = 64;
  const StepPlan step;
  const RopeTable rope(rope_parameters(kCols));
  const AttentionSpec spec{1, 1, kCols, 1.0F, 0, &rope};
  const auto storage = storage_of(backend(), {1, 1, kCols, dtype(), 1});
  const Tensor part(oracle(), kCols, kCols, dtype());
  auto weight = backend().load_linear(std::vector<TensorView>{part});
  ASSERT_TRUE(storage && weight.ok());
  const std::vector<float> norm(kCols, 1.0F);
  const Tensor wide(backend(), 0, kCols, DType::kFloat32);
  const Tensor twice(backend(), 0, 2 * kCols, DType::kFloat32);
  const Tensor activation(backend(), 0, kCols, dtype());
  ASSERT_OK(backend().begin_step(step, std::vector<int64_t>{0}));
  ASSERT_OK(backend().embed(part, wide));
  ASSERT_OK(backend().rms_norm(wide, norm.data(), 1e-5F, activation));
  ASSERT_OK(backend().linear(**weight, activation, wide, false));
  ASSERT_OK(backend().write_kv(*storage, 0, spec, wide, wide));
  for (const RowSet rows : {RowSet::kAll, RowSet::kSampled}) {
    ASSERT_OK(backend().attention(*storage, 0, spec, rows, wide, activation));
  }
  ASSERT_OK(backend().gated(Activation::kSilu, twice, activation));
  ASSERT_OK(backend().gather_sampled(wide, wide));
  ASSERT_OK(backend().download(wide, {}));
  ASSERT_OK(backend().argmax(wide, {}));
  ASSERT_OK(backend().end_step());
}

TEST_P(DenseOps, OperationsOfAStepAreRefusedWithoutOne) {
  const Tensor x(backend(), 2, 64, DType::kFloat32);
  const Tensor activation(backend(), 2, 64, dtype());
  const RopeTable rope(rope_parameters(64));
  const AttentionSpec spec{1, 1, 64, 1.0F, 0, &rope};
  const auto storage = storage_of(backend(), {1, 1, 64, dtype(), 1});
  ASSERT_TRUE(storage);
  const Status refusals[] = {backend().embed(x, x), backend().gather_sampled(x, x),
                             backend().write_kv(*storage, 0, spec, x, x),
                             backend().attention(*storage, 0, spec, RowSet::kAll, x, activation)};
  for (const Status& status : refusals) {
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_NE(status.message().find("begin_step"), std::string::npos) << status.message();
  }
}

TEST_P(DenseOps, EmptyWeightsAreRefused) {
  EXPECT_EQ(backend().load_linear({}).status().code(), StatusCode::kInvalidArgument);
  const std::vector<TensorView> empty = {{nullptr, dtype(), 0, 16, 16}};
  EXPECT_EQ(backend().load_linear(empty).status().code(), StatusCode::kInvalidArgument);
}

INSTANTIATE_TEST_SUITE_P(Backends, DenseOps, testing::ValuesIn(backend_cases()), case_name);

}  // namespace
}  // namespace anyslot::ops_test
