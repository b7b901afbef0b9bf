#include "backend/tracing_backend.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "backend/ops_test_support.h"
#include "support/temporary_folder.h"

namespace anyslot::ops_test {
namespace {

using nlohmann::json;
using testing_support::read_bytes;
using testing_support::TemporaryFolder;

constexpr int kHeadDim = 16;
constexpr int kHeads = 2;
constexpr int64_t kHidden = kHeads * kHeadDim;
constexpr int64_t kVocab = 7;

std::unique_ptr<Backend> reference() { return create_reference_backend({DType::kFloat32, 1, ""}); }

/// Three rows, of which the first and the last are sampled, behind one copied block.
struct Step {
  std::vector<BlockId> blocks = {1};
  std::vector<int64_t> windows = {0};
  std::vector<BlockCopy> copies = {{0, 2, 5, 3}};
  StepPlan plan;

  Step() {
    for (int64_t r = 0; r < 3; ++r) {
      const int32_t token = static_cast<int32_t>(r) + 1;
      plan.rows.push_back({token, r, kBlockSize + r, r, 0, r != 1});
    }
    plan.sequences = {{0, 3, 0, 1}};
    plan.placements = {{{blocks, 3, 0, KeyForm::kTurned}, 0, 3, 0}};
    plan.kv_tokens_read = 3;
  }
};

/// What every operation of a backend gave.
struct Results {
  std::vector<std::vector<float>> values;
  std::vector<Status> failures;
};

Results run_everything(Backend& backend) {
  Results results;
  Random random(kSeed);
  const Step step;
  const RopeTable rope(rope_parameters(kHeadDim));
  const std::vector<const RopeTable*> ropes = {&rope};
  const AttentionSpec spec{kHeads, kHeads, kHeadDim, 0.25F, 0, &rope};
  const auto matrix = [&](int64_t rows, int64_t cols) {
    return Tensor(backend, rows, cols, DType::kFloat32, random.normal(rows * cols));
  };
  const auto keep = [&](const Status& status, const Tensor& tensor) {
    EXPECT_TRUE(status.ok()) << status.message();
    results.values.push_back(tensor.values());
  };
  const auto storage = backend.create_kv_storage({1, kHeads, kHeadDim, DType::kFloat32, 3});
  EXPECT_TRUE(storage.ok());
  import_values(**storage, 0, random.normal(2 * kHidden * kBlockSize));
  EXPECT_TRUE(backend.copy_blocks(**storage, step.copies, ropes).ok());
  results.values.push_back(export_values(**storage, 2));

  EXPECT_TRUE(backend.begin_step(step.plan, step.windows).ok());
  const Tensor embedded = matrix(3, kHidden);
  keep(backend.embed(matrix(kVocab, kHidden), embedded), embedded);
  const Tensor normed = matrix(3, kHidden);
  const std::vector<float> norm = random.normal(kHidden);
  keep(backend.rms_norm(embedded, norm.data(), 1e-5F, normed), normed);
  const Tensor projection = matrix(2 * kHidden, kHidden);
  const std::vector<TensorView> parts = {projection};
  const auto weight = backend.load_linear(parts);
  EXPECT_TRUE(weight.ok());
  const Tensor product = matrix(3, 2 * kHidden);
  keep(backend.linear(**weight, normed, product, true), product);
  EXPECT_TRUE(backend.write_kv(**storage, 0, spec, normed, embedded).ok());
  results.values.push_back(export_values(**storage, 1));
  const Tensor attended = matrix(3, kHidden);
  keep(backend.attention(**storage, 0, spec, RowSet::kAll, normed, attended), attended);
  const Tensor gated = matrix(3, kHidden);
  keep(backend.gated(Activation::kSilu, product, gated), gated);
  const Tensor sampled = matrix(2, kHidden);
  keep(backend.gather_sampled(attended, sampled), sampled);
  const Tensor last = matrix(2, kHidden);
  keep(backend.attention(**storage, 0, spec, RowSet::kSampled, sampled, last), last);
  std::vector<float> downloaded(2 * kHidden);
  EXPECT_TRUE(backend.download(last, downloaded).ok());
  results.values.push_back(downloaded);

  results.failures.push_back(backend.rms_norm(embedded, norm.data(), 1e-5F, product));
  results.failures.push_back(backend.attention(**storage, 1, spec, RowSet::kAll, normed, attended));
  EXPECT_TRUE(backend.end_step().ok());
  results.failures.push_back(backend.embed(projection, embedded));
  return results;
}

class TracingBackendTest : public testing::Test {
 protected:
  void SetUp() override {
    auto trace = TraceFile::create(folder_.file("trace"));
    ASSERT_TRUE(trace.ok());
    trace_ = *trace;
    backend_ = create_tracing_backend(reference(), trace_);
  }

  std::vector<json> events() {
    EXPECT_TRUE(trace_->finish().ok());
    std::vector<json> events;
    for (const json& event : json::parse(read_bytes(folder_.file("trace")))) {
      if (event.at("ph") == "X") events.push_back(event);
    }
    return events;
  }

  TemporaryFolder folder_;
  std::shared_ptr<TraceFile> trace_;
  std::unique_ptr<Backend> backend_;
};

TEST_F(TracingBackendTest, GivesWhatTheInnerBackendGives) {
  const auto inner = reference();
  EXPECT_EQ(backend_->name(), inner->name());
  EXPECT_EQ(backend_->description(), inner->description());
  EXPECT_EQ(backend_->activation_dtype(), inner->activation_dtype());
  const Results expected = run_everything(*inner);
  const Results actual = run_everything(*backend_);
  EXPECT_EQ(actual.values, expected.values);
  ASSERT_EQ(actual.failures.size(), expected.failures.size());
  for (size_t i = 0; i < expected.failures.size(); ++i) {
    EXPECT_FALSE(expected.failures[i].ok());
    EXPECT_EQ(actual.failures[i].code(), expected.failures[i].code());
    EXPECT_EQ(actual.failures[i].message(), expected.failures[i].message());
  }
}

TEST_F(TracingBackendTest, AddsAnEventPerOperationInOrder) {
  run_everything(*backend_);
  const std::vector<json> events = this->events();
  std::vector<std::string> names;
  double end_before = 0;
  for (const json& event : events) {
    names.push_back(event.at("name"));
    EXPECT_GE(event.at("ts"), end_before - 1e-6) << names.back() << " begins in another operation";
    EXPECT_GE(event.at("dur"), 0);
    end_before = event.at("ts").get<double>() + event.at("dur").get<double>();
  }
  EXPECT_EQ(names, (std::vector<std::string>{"copy_blocks", "begin_step", "embed", "rms_norm",
                                             "linear", "write_kv", "attention", "gated_silu",
                                             "gather_sampled", "attention", "download", "rms_norm",
                                             "attention", "end_step", "embed"}));
}

TEST_F(TracingBackendTest, TellsSizes) {
  run_everything(*backend_);
  const std::vector<json> events = this->events();
  EXPECT_EQ(events[0].at("args"), json({{"blocks", 1}, {"layers", 1}}));
  EXPECT_EQ(events[1].at("args"), json({{"rows", 3}, {"placements", 1}, {"windows", 1}}));
  EXPECT_EQ(events[2].at("args"), json({{"rows", 3}, {"cols", kHidden}}));
  EXPECT_EQ(events[4].at("args"), json({{"rows", 3},
                                        {"in_features", kHidden},
                                        {"out_features", 2 * kHidden},
                                        {"accumulate", 1}}));
  EXPECT_EQ(events[5].at("args"), json({{"layer", 0}, {"rows", 3}, {"kv_heads", kHeads}}));
  EXPECT_EQ(events[6].at("args"),
            json({{"layer", 0}, {"rows", 3}, {"heads", kHeads}, {"window", 0}, {"kv_tokens", 3}}));
  EXPECT_EQ(events[9].at("args"),
            json({{"layer", 0}, {"rows", 2}, {"heads", kHeads}, {"window", 0}}));
}

}  // namespace
}  // namespace anyslot::ops_test
