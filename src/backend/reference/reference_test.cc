#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "backend/ops_test_support.h"

// The oracle itself, against formulas that are written another way.

namespace anyslot::ops_test {
namespace {

constexpr int kHeadDim = 12;
constexpr int kRotaryDim = 8;
constexpr double kTheta = 100.0;

std::unique_ptr<Backend> reference_backend() {
  return create_reference_backend({DType::kFloat32, 1, ""});
}

/// Two documents of different key forms and a text, and one request that reads all of them.
struct Prompt {
  std::vector<BlockId> blocks = {4, 1, 3, 0};
  std::span<const BlockId> list{blocks};
  SpanView first{list.subspan(0, 2), 19, 0, KeyForm::kTurned};
  SpanView second{list.subspan(2, 1), 5, 0, KeyForm::kRaw};
  SpanView text{list.subspan(3, 1), 6, 1000, KeyForm::kTurned};
  std::vector<Placement> placements = {{first, 0, 19, 7}, {second, 1, 5, 26}, {text, 0, 6, 31}};
  int64_t first_row = 32;
  int64_t num_rows = 4;
};

/// K and V before turning, of every token of every placement: [placement][token][head_dim].
using Vectors = std::vector<std::vector<std::vector<float>>>;

Vectors random_vectors(const Prompt& prompt, uint32_t seed) {
  Random random(seed);
  Vectors vectors;
  for (const Placement& placement : prompt.placements) {
    vectors.emplace_back();
    for (int64_t i = 0; i < placement.span.num_tokens; ++i) {
      vectors.back().push_back(random.normal(kHeadDim));
    }
  }
  return vectors;
}

/// A step whose rows are the tokens of a span, to write it.
StepPlan writing_step(const SpanView& span) {
  StepPlan step;
  for (int64_t i = 0; i < span.num_tokens; ++i) {
    const int64_t slot = int64_t{span.blocks[i / kBlockSize]} * kBlockSize + i % kBlockSize;
    const int64_t angle = span.key_form == KeyForm::kRaw ? 0 : span.first_angle + i;
    step.rows.push_back({0, i, slot, angle, 0, false});
  }
  step.sequences.push_back({0, static_cast<int32_t>(span.num_tokens), 0, 0});
  return step;
}

/// The score of two unturned vectors whose positions differ by `distance`: RoPE as a function of
/// the difference alone.
double relative_score(const float* q, const float* k, int64_t distance, double factor) {
  const std::vector<double> inv_freq = rope_parameters(kRotaryDim, kTheta).inv_freq;
  double score = 0;
  for (int j = 0; j < kRotaryDim / 2; ++j) {
    const int other = j + kRotaryDim / 2;
    const double angle = static_cast<double>(distance) * inv_freq[j];
    score += factor * (double{q[j]} * k[j] + double{q[other]} * k[other]) * std::cos(angle);
    score += factor * (double{q[j]} * k[other] - double{q[other]} * k[j]) * std::sin(angle);
  }
  for (int i = kRotaryDim; i < kHeadDim; ++i) score += double{q[i]} * k[i];
  return score;
}

std::vector<float> expected_output(const Prompt& prompt, const Vectors& keys, const Vectors& values,
                                   const std::vector<float>& q, float scale, double factor,
                                   int64_t window) {
  std::vector<float> output;
  for (int64_t r = 0; r < prompt.num_rows; ++r) {
    std::vector<double> sum(kHeadDim);
    double total = 0;
    for (size_t p = 0; p < prompt.placements.size(); ++p) {
      const Placement& placement = prompt.placements[p];
      for (int64_t i = placement.begin; i < placement.end; ++i) {
        const int64_t distance = prompt.first_row + r - (placement.start + i);
        if (distance < 0 || (window > 0 && distance >= window)) continue;
        const double weight =
            std::exp(scale * relative_score(&q[r * kHeadDim], keys[p][i].data(), distance, factor));
        total += weight;
        for (int d = 0; d < kHeadDim; ++d) sum[d] += weight * values[p][i][d];
      }
    }
    for (const double element : sum) output.push_back(static_cast<float>(element / total));
  }
  return output;
}

std::vector<float> concatenated(const std::vector<std::vector<float>>& tokens) {
  std::vector<float> flat;
  for (const std::vector<float>& token : tokens)
    flat.insert(flat.end(), token.begin(), token.end());
  return flat;
}

TEST(Reference, AttentionDependsOnDifferencesOfPositionsOnly) {
  const Prompt prompt;
  const Vectors keys = random_vectors(prompt, 1);
  const Vectors values = random_vectors(prompt, 2);
  const std::vector<float> q = Random(3).normal(prompt.num_rows * kHeadDim);
  const auto backend = reference_backend();
  auto storage = backend->create_kv_storage({1, 1, kHeadDim, DType::kFloat32, 5});
  ASSERT_TRUE(storage.ok());
  for (const double factor : {1.0, 1.7}) {
    const RopeTable rope(rope_parameters(kRotaryDim, kTheta, factor));
    for (const int64_t window : {0, 3, 10}) {
      SCOPED_TRACE(testing::Message() << "window " << window << ", factor " << factor);
      const AttentionSpec spec{1, 1, kHeadDim, 0.5F, window, &rope};
      const std::vector<int64_t> windows = {window};
      for (size_t p = 0; p < prompt.placements.size(); ++p) {
        const StepPlan step = writing_step(prompt.placements[p].span);
        const auto rows = static_cast<int64_t>(step.rows.size());
        ASSERT_OK(backend->begin_step(step, windows));
        ASSERT_OK(backend->write_kv(
            **storage, 0, spec,
            Tensor(*backend, rows, kHeadDim, DType::kFloat32, concatenated(keys[p])),
            Tensor(*backend, rows, kHeadDim, DType::kFloat32, concatenated(values[p]))));
        ASSERT_OK(backend->end_step());
      }
      StepPlan step;
      step.placements = prompt.placements;
      step.sequences.push_back({0, static_cast<int32_t>(prompt.num_rows), 0, 3});
      for (int64_t r = 0; r < prompt.num_rows; ++r) {
        step.rows.push_back({0, prompt.first_row + r, 0, 0, 0, false});
      }
      const Tensor out(*backend, prompt.num_rows, kHeadDim, DType::kFloat32);
      ASSERT_OK(backend->begin_step(step, windows));
      ASSERT_OK(backend->attention(**storage, 0, spec, RowSet::kAll,
                                   Tensor(*backend, prompt.num_rows, kHeadDim, DType::kFloat32, q),
                                   out));
      ASSERT_OK(backend->end_step());
      expect_near(out.values(),
                  expected_output(prompt, keys, values, q, spec.scale, factor, window), 1e-5, 1e-5);
    }
  }
}

TEST(Reference, RmsNormByHand) {
  const auto backend = reference_backend();
  const std::vector<float> x = {3, 4};
  const std::vector<float> weight = {1, 10};
  const Tensor out(*backend, 1, 2, DType::kFloat32);
  ASSERT_OK(
      backend->rms_norm(Tensor(*backend, 1, 2, DType::kFloat32, x), weight.data(), 0.0F, out));
  const float root = std::sqrt(12.5F);
  expect_near(out.values(), std::vector<float>{3 / root, 40 / root}, 1e-6, 0);
}

TEST(Reference, GatedSiluByHand) {
  const auto backend = reference_backend();
  const std::vector<float> gate_up = {0, 1, -1, 5, 2, 3};
  const Tensor out(*backend, 1, 3, DType::kFloat32);
  ASSERT_OK(
      backend->gated(Activation::kSilu, Tensor(*backend, 1, 6, DType::kFloat32, gate_up), out));
  expect_near(out.values(), std::vector<float>{0, 2 * 0.7310586F, -3 * 0.2689414F}, 1e-6, 0);
}

TEST(Reference, LinearByHand) {
  const auto backend = reference_backend();
  const std::vector<float> w = {1, 2, 3, 4, 5, 6};
  const std::vector<float> x = {1, 10, 100};
  const std::vector<float> before = {1000, 0};
  const Tensor part(*backend, 2, 3, DType::kFloat32, w);
  auto weight = backend->load_linear(std::vector<TensorView>{part});
  ASSERT_TRUE(weight.ok());
  const Tensor out(*backend, 1, 2, DType::kFloat32, before);
  ASSERT_OK(backend->linear(**weight, Tensor(*backend, 1, 3, DType::kFloat32, x), out, true));
  EXPECT_EQ(out.values(), (std::vector<float>{1321, 654}));
}

TEST(Reference, WrongShapesAreRefused) {
  const auto backend = reference_backend();
  const Tensor x(*backend, 2, 4, DType::kFloat32);
  const std::vector<float> weight(4);
  EXPECT_EQ(backend->rms_norm(x, weight.data(), 0, Tensor(*backend, 2, 3, DType::kFloat32)).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(backend->gather_sampled(x, x).code(), StatusCode::kInvalidArgument);  // no step
}

TEST(Reference, WindowsMustBeAnnounced) {
  const auto backend = reference_backend();
  const RopeTable rope(rope_parameters(kRotaryDim));
  auto storage = backend->create_kv_storage({1, 1, kHeadDim, DType::kFloat32, 1});
  ASSERT_TRUE(storage.ok());
  const StepPlan step;
  const Tensor q(*backend, 0, kHeadDim, DType::kFloat32);
  ASSERT_OK(backend->begin_step(step, std::vector<int64_t>{0}));
  ASSERT_OK(backend->attention(**storage, 0, {1, 1, kHeadDim, 1.0F, 0, &rope}, RowSet::kAll, q, q));
  EXPECT_EQ(
      backend->attention(**storage, 0, {1, 1, kHeadDim, 1.0F, 8, &rope}, RowSet::kAll, q, q).code(),
      StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace anyslot::ops_test
