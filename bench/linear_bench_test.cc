#include "linear_bench.h"

#include <gtest/gtest.h>

#include <map>

#include "backend/ops.h"

namespace anyslot::bench {
namespace {

TEST(LinearShapes, AreThoseOfTheModel) {
  const auto model =
      load_config_file(std::string(ANYSLOT_SOURCE_DIR) + "/bench/shapes/llama-3.2-1b.json");
  ASSERT_TRUE(model.ok()) << model.status().message();
  std::map<std::string, std::pair<int64_t, int64_t>> sizes;
  for (const LinearShape& shape : linear_shapes(*model)) sizes[shape.name] = {shape.out, shape.in};
  const std::map<std::string, std::pair<int64_t, int64_t>> expected = {{"qkv", {3072, 2048}},
                                                                       {"o", {2048, 2048}},
                                                                       {"gate_up", {16384, 2048}},
                                                                       {"down", {2048, 8192}},
                                                                       {"lm_head", {128256, 2048}}};
  EXPECT_EQ(sizes, expected);
}

/// Multiplies like the backend it stands before, but forgets to add.
class ForgetfulBackend : public Backend {
 public:
  explicit ForgetfulBackend(std::unique_ptr<Backend> backend) : backend_(std::move(backend)) {}

  std::string_view name() const override { return "forgetful"; }
  std::string description() const override { return "forgetful"; }
  DType activation_dtype() const override { return backend_->activation_dtype(); }
  Expected<std::unique_ptr<DeviceBuffer>> allocate(size_t bytes) override {
    return backend_->allocate(bytes);
  }
  Expected<std::unique_ptr<LinearWeight>> load_linear(std::span<const TensorView> parts) override {
    return backend_->load_linear(parts);
  }
  Expected<std::unique_ptr<KvStorage>> create_kv_storage(const KvShape& shape) override {
    return backend_->create_kv_storage(shape);
  }
  Status begin_step(const StepPlan& plan, std::span<const int64_t> windows) override {
    return backend_->begin_step(plan, windows);
  }
  Status end_step() override { return backend_->end_step(); }
  Status linear(const LinearWeight& weight, const TensorView& x, const TensorView& out,
                bool accumulate) override {
    const Status status = backend_->linear(weight, x, out, accumulate);
    out.row_as<float>(out.rows - 1)[out.cols - 1] += 0.01F;
    return status;
  }
  Status copy_blocks(KvStorage&, std::span<const BlockCopy>,
                     std::span<const RopeTable* const>) override {
    return internal_error("not used");
  }
  Status embed(const TensorView&, const TensorView&) override { return internal_error("not used"); }
  Status rms_norm(const TensorView&, const float*, float, const TensorView&) override {
    return internal_error("not used");
  }
  Status write_kv(KvStorage&, int, const AttentionSpec&, const TensorView&,
                  const TensorView&) override {
    return internal_error("not used");
  }
  Status attention(const KvStorage&, int, const AttentionSpec&, RowSet, const TensorView&,
                   const TensorView&) override {
    return internal_error("not used");
  }
  Status gated(Activation, const TensorView&, const TensorView&) override {
    return internal_error("not used");
  }
  Status gather_sampled(const TensorView&, const TensorView&) override {
    return internal_error("not used");
  }
  Status download(const TensorView&, std::span<float>) override {
    return internal_error("not used");
  }

 private:
  std::unique_ptr<Backend> backend_;
};

TEST(LinearBench, MeasuresTheErrorOfTheResult) {
  const LinearShape shape{"small", 96, 64};
  LinearBenchOptions options;
  options.limits = {.runs = 1, .seconds = 0};
  options.type = ComputeType::kFloat32;
  const BackendOptions backend_options{DType::kFloat32, 1, ""};
  const auto run = [&](Backend& backend) {
    const auto bench = LinearBench::create(backend, shape, options);
    EXPECT_TRUE(bench.ok()) << bench.status().message();
    const auto result = (*bench)->run(5);
    EXPECT_TRUE(result.ok()) << result.status().message();
    EXPECT_GT(result->seconds, 0);
    EXPECT_GT(result->onednn_seconds, 0);
    EXPECT_EQ(result->operations, 2.0 * 5 * 96 * 64);
    EXPECT_EQ(result->weight_bytes, 96.0 * 64 * 4);
    return result->error;
  };
  const auto right = create_reference_backend(backend_options);
  EXPECT_LT(run(*right), 1e-5);
  ForgetfulBackend wrong(create_reference_backend(backend_options));
  EXPECT_NEAR(run(wrong), 0.01, 1e-4);
}

}  // namespace
}  // namespace anyslot::bench
