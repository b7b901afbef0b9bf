#include <cmath>
#include <limits>
#include <vector>

#include "backend/ops_test_support.h"
#include "backend/test_step_builder.h"

namespace anyslot::ops_test {
namespace {

class RecordOps : public OpsTest {};

TEST_P(RecordOps, ArgmaxTakesTheFirstOfTheLargest) {
  constexpr int64_t kCols = 5003;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> x = random_.normal(6 * kCols);
  const auto at = [&](int64_t row, int64_t col) -> float& { return x[row * kCols + col]; };
  at(0, 4999) = 50;
  at(1, 2048) = at(1, 3000) = at(1, 5002) = 50;
  for (int64_t c = 0; c < kCols; ++c) at(2, c) = -7;
  at(3, 0) = 50;
  at(4, 17) = std::nanf("");
  at(5, 5002) = -kInfinity;
  std::vector<int32_t> places(6);
  ASSERT_OK(backend().argmax(Tensor(backend(), 6, kCols, DType::kFloat32, x, 5), places));
  EXPECT_EQ(places, (std::vector<int32_t>{4999, 2048, 0, 0, -1, -1}));
}

constexpr int kHeads = 8;
constexpr int kKvHeads = 2;
constexpr int kHeadDim = 64;
constexpr int64_t kCols = int64_t{kHeads} * kHeadDim;

/// Decode steps of three requests, with contexts, sharing and positions that change from step to
/// step.
TestStepBuilder decode_step(int step, KeyForm form) {
  TestStepBuilder builder;
  const SpanView shared = builder.span(40 + 90 * step, form);
  for (int request = 0; request < 3; ++request) {
    builder.begin_sequence();
    int64_t start = 3 * request * step;
    if (request < step % 4) {
      builder.place(shared, start);
      start += shared.num_tokens;
    }
    const SpanView own = builder.span(20 + 37 * step * request, form, start);
    builder.place(own, start);
    builder.row(start + own.num_tokens - 1, true);
  }
  return builder;
}

/// A backend may record a step and run the record for the next ones: their plans differ, and so do
/// the numbers in the buffers.
class RecordedSteps {
 public:
  RecordedSteps(Backend& backend, std::unique_ptr<KvStorage> storage, DType dtype)
      : backend_(backend),
        storage_(std::move(storage)),
        q_(backend.allocate(3 * kCols * sizeof(float)).value()),
        out_(backend, 3, kCols, dtype) {
    Random random(kSeed);
    const KvShape& shape = storage_->shape();
    const auto size = static_cast<int64_t>(shape.block_bytes() / dtype_size(shape.dtype));
    for (BlockId block = 0; block < shape.num_blocks; ++block) {
      import_values(*storage_, block, rounded(random.normal(size), shape.dtype));
    }
  }

  std::vector<float> run(const StepPlan& step, const AttentionSpec& spec,
                         const std::vector<float>& q) {
    EXPECT_TRUE(q_->write(std::as_bytes(std::span(q))).ok());
    EXPECT_TRUE(backend_.begin_step(step, std::vector<int64_t>{0}).ok());
    const Status status = backend_.run_recorded({this, storage_.get(), 3}, [&] {
      const TensorView view{q_->data(), DType::kFloat32, 3, kCols, kCols};
      Status last = backend_.attention(*storage_, 0, spec, RowSet::kAll, view, out_);
      return last.ok() ? backend_.attention(*storage_, 1, spec, RowSet::kSampled, view, out_)
                       : last;
    });
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_TRUE(backend_.end_step().ok());
    return out_.values();
  }

 private:
  Backend& backend_;
  std::unique_ptr<KvStorage> storage_;
  std::unique_ptr<DeviceBuffer> q_;
  Tensor out_;
};

TEST_P(RecordOps, RecordedStepsSeeTheirOwnPlans) {
  constexpr int kSteps = 14;
  const RopeTable rope(rope_parameters(kHeadDim));
  const AttentionSpec spec{kHeads, kKvHeads, kHeadDim, 0.125F, 0, &rope};
  const KvShape shape{2, kKvHeads, kHeadDim, dtype(), 256};
  for (const KeyForm form : {KeyForm::kTurned, KeyForm::kRaw}) {
    auto storage = storage_of(backend(), shape);
    auto oracle_storage = storage_of(oracle(), shape);
    ASSERT_TRUE(storage && oracle_storage);
    RecordedSteps actual(backend(), std::move(storage), dtype());
    RecordedSteps expected(oracle(), std::move(oracle_storage), DType::kFloat32);
    for (int i = 0; i < kSteps; ++i) {
      SCOPED_TRACE(testing::Message() << "step " << i);
      const TestStepBuilder builder = decode_step(i % 9, form);
      ASSERT_LE(builder.num_blocks(), shape.num_blocks);
      const std::vector<float> q = random_.normal(3 * kCols);
      expect_rows_near(actual.run(builder.step, spec, q), expected.run(builder.step, spec, q),
                       kCols, attention_error_of(dtype()));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, RecordOps, testing::ValuesIn(backend_cases()), case_name);

}  // namespace
}  // namespace anyslot::ops_test
