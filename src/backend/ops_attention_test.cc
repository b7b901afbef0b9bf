#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "backend/ops_test_support.h"
#include "backend/test_step_builder.h"

namespace anyslot::ops_test {
namespace {

/// One kind of layer.
struct Shape {
  int head_dim;
  int num_kv_heads;
  int group;
  int rotary_dim;
  double attention_factor = 1.0;

  int num_heads() const { return num_kv_heads * group; }
};

/// Every head_dim, group and number of kv heads, and partial rotary, in few enough shapes to be
/// quick.
constexpr Shape kShapes[] = {
    {16, 1, 1, 16},        {16, 2, 8, 16},  {32, 8, 2, 32},   {32, 1, 3, 16},
    {64, 2, 4, 64},        {64, 1, 7, 64},  {64, 3, 3, 32},   {64, 1, 1, 0},
    {80, 2, 2, 32},        {80, 1, 4, 80},  {96, 2, 3, 96},   {128, 1, 8, 128},
    {128, 8, 1, 128, 1.3}, {128, 2, 4, 64}, {256, 1, 4, 256}, {256, 2, 1, 64}};

/// A request that has documents one after the other from `start` on, then a text, whose last
/// `num_rows` tokens are rows.
void add_request(TestStepBuilder& builder, const std::vector<SpanView>& documents, int64_t start,
                 int64_t text_tokens, int64_t num_rows) {
  builder.begin_sequence();
  for (const SpanView& document : documents) {
    builder.place(document, start);
    start += document.num_tokens;
  }
  const KeyForm form = documents.empty() ? KeyForm::kTurned : documents[0].key_form;
  builder.place(builder.span(text_tokens, form, start), start);
  builder.rows(start + text_tokens - num_rows, num_rows);
}

/// Encoding, prefill in chunks, decode, and shared documents, all in one step. Every second
/// document is of the second form.
TestStepBuilder mixed_scenario(KeyForm form, KeyForm second_form) {
  TestStepBuilder s;
  std::vector<SpanView> docs;
  for (const int64_t length : {1, 15, 16, 17, 33, 257}) {
    docs.push_back(s.span(length, docs.size() % 2 == 0 ? form : second_form));
  }
  s.begin_sequence();  // a document that is encoded alone
  s.place(s.span(33, form), 0);
  s.rows(0, 33);
  add_request(s, {docs[3], docs[5]}, 0, 57, 20);          // the last chunk of a prompt
  add_request(s, {}, 0, 17, 17);                          // a prompt without documents
  add_request(s, {docs[0], docs[5], docs[2]}, 0, 9, 1);   // decoding
  add_request(s, {docs[5], docs[4], docs[1]}, 3, 1, 1);   // the same document elsewhere
  add_request(s, {docs[4], docs[5]}, 100'003, 21, 1);     // far away
  add_request(s, {docs[5], docs[3], docs[5]}, 40, 5, 3);  // a document given twice
  s.begin_sequence();  // rows inside a document; placements that begin late
  s.place(docs[4], 2, 5, 33);
  s.place(docs[5], 35, 16, 250);
  s.rows(200, 3);
  s.begin_sequence();  // sees nothing
  s.place(docs[4], 500);
  s.rows(499, 1);
  return s;
}

/// Few rows over a long document, which are cut to occupy all threads; and a longer prefill.
TestStepBuilder long_scenario(KeyForm form) {
  TestStepBuilder s;
  const SpanView shared = s.span(4095, form);
  for (const int64_t start : {0, 5, 1000, 100'000}) add_request(s, {shared}, start, 33, 1);
  add_request(s, {s.span(3000, form)}, 0, 7, 1);
  add_request(s, {s.span(70, form)}, 0, 130, 130);
  return s;
}

/// Slots of keys that some row sees.
std::vector<bool> visible_slots(const TestStepBuilder& scenario, int64_t window) {
  std::vector<bool> visible(int64_t{scenario.num_blocks()} * kBlockSize);
  for (const Row& row : scenario.step.rows) {
    const SequencePlan& sequence = scenario.step.sequences[row.sequence];
    for (int32_t p = sequence.placement_begin; p < sequence.placement_end; ++p) {
      const Placement& placement = scenario.step.placements[p];
      const int64_t distance = row.position - placement.start;
      for (int64_t i = placement.begin; i < std::min(placement.end, distance + 1); ++i) {
        if (window > 0 && i <= distance - window) continue;
        const int64_t block = placement.span.blocks[i / kBlockSize];
        visible[block * kBlockSize + i % kBlockSize] = true;
      }
    }
  }
  return visible;
}

/// What the oracle said, for all backends: it is slow and does not depend on them.
std::vector<float> remembered(const std::string& key, const auto& compute) {
  static std::map<std::string, std::vector<float>> results;
  const auto [entry, is_new] = results.try_emplace(key);
  if (is_new) entry->second = compute();
  return entry->second;
}

class AttentionOps : public OpsTest {
 protected:
  /// `sharpness` scales the scores; at 1 their standard deviation is about 1.
  void check(const std::string& name, const TestStepBuilder& scenario, const Shape& shape,
             int64_t window, RowSet row_set = RowSet::kAll, double sharpness = 1.0,
             float score_cap = 0);

  /// The reference is slow, and needs no large shapes.
  bool is_too_slow(const Shape& shape) const {
    return GetParam().is_reference && shape.num_heads() * shape.head_dim > 256;
  }

 private:
  std::unique_ptr<KvStorage> filled_storage(Backend& owner, const KvShape& shape,
                                            const std::vector<bool>& visible);
  std::vector<float> run(Backend& target, const KvStorage& storage, const AttentionSpec& spec,
                         const StepPlan& step, RowSet row_set, const std::vector<float>& q);
};

/// Slots that no row sees hold large numbers, so that it shows when one takes part.
std::unique_ptr<KvStorage> AttentionOps::filled_storage(Backend& owner, const KvShape& shape,
                                                        const std::vector<bool>& visible) {
  Random random(kSeed);
  auto storage = storage_of(owner, shape);
  const auto size = static_cast<int64_t>(shape.block_bytes() / dtype_size(shape.dtype));
  for (BlockId block = 0; storage && block < shape.num_blocks; ++block) {
    std::vector<float> values = rounded(random.normal(size), shape.dtype);
    for (int64_t i = 0; i < size; ++i) {
      const int64_t token = i / shape.head_dim % kBlockSize;
      if (!visible[int64_t{block} * kBlockSize + token])
        values[i] = values[i] < 0 ? -512.0F : 512.0F;
    }
    import_values(*storage, block, values);
  }
  return storage;
}

std::vector<float> AttentionOps::run(Backend& target, const KvStorage& storage,
                                     const AttentionSpec& spec, const StepPlan& step,
                                     RowSet row_set, const std::vector<float>& q) {
  const int64_t cols = int64_t{spec.num_heads} * spec.head_dim;
  const int64_t rows = static_cast<int64_t>(q.size()) / cols;
  // Q is a column range of the product that gives Q, K and V.
  const Tensor queries(target, rows, cols, DType::kFloat32, q, 32);
  const Tensor out(target, rows, cols, target.activation_dtype(),
                   std::vector<float>(q.size(), 99.0F));
  const std::vector<int64_t> windows = {spec.window + 1000, spec.window};
  EXPECT_TRUE(target.begin_step(step, windows).ok());
  const Status status = target.attention(storage, 1, spec, row_set, queries, out);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(target.end_step().ok());
  return out.values();
}

void AttentionOps::check(const std::string& name, const TestStepBuilder& scenario,
                         const Shape& shape, int64_t window, RowSet row_set, double sharpness,
                         float score_cap) {
  SCOPED_TRACE(testing::Message() << name << ": head_dim " << shape.head_dim << ", kv heads "
                                  << shape.num_kv_heads << ", group " << shape.group << ", rotary "
                                  << shape.rotary_dim << ", window " << window);
  const RopeTable rope(rope_parameters(shape.rotary_dim, 10000.0, shape.attention_factor));
  const auto scale = static_cast<float>(sharpness / std::sqrt(shape.head_dim));
  const AttentionSpec spec{
      shape.num_heads(), shape.num_kv_heads, shape.head_dim, scale, window, &rope, score_cap};
  const KvShape kv_shape{2, shape.num_kv_heads, shape.head_dim, kv_dtype(), scenario.num_blocks()};
  const StepPlan& step = scenario.step;
  const std::vector<bool> visible = visible_slots(scenario, window);
  int64_t num_rows = static_cast<int64_t>(step.rows.size());
  if (row_set == RowSet::kSampled) num_rows = std::ranges::count(step.rows, true, &Row::sample);
  const std::vector<float> q =
      Random(kSeed + 1).normal(num_rows * shape.num_heads() * shape.head_dim);

  const auto storage = filled_storage(backend(), kv_shape, visible);
  ASSERT_TRUE(storage);
  const std::vector<float> actual = run(backend(), *storage, spec, step, row_set, q);
  const std::string key = name + std::string(dtype_name(kv_dtype())) +
                          testing::PrintToString(std::tuple(
                              shape.head_dim, shape.num_kv_heads, shape.group, shape.rotary_dim,
                              window, row_set == RowSet::kAll, scale, score_cap));
  const std::vector<float> expected = remembered(key, [&] {
    return run(oracle(), *filled_storage(oracle(), kv_shape, visible), spec, step, row_set, q);
  });
  const bool has_raw_keys = std::ranges::any_of(step.placements, [](const Placement& placement) {
    return placement.span.key_form == KeyForm::kRaw;
  });
  expect_rows_near(actual, expected, spec.num_heads * spec.head_dim,
                   attention_error(has_raw_keys) * sharpness);
}

TEST_P(AttentionOps, TurnedKeys) {
  const TestStepBuilder scenario = mixed_scenario(KeyForm::kTurned, KeyForm::kTurned);
  for (const Shape& shape : kShapes) {
    if (!is_too_slow(shape)) check("turned", scenario, shape, 0);
  }
}

TEST_P(AttentionOps, RawKeys) {
  const TestStepBuilder scenario = mixed_scenario(KeyForm::kRaw, KeyForm::kRaw);
  for (const Shape& shape : kShapes) {
    if (!is_too_slow(shape)) check("raw", scenario, shape, 0);
  }
}

TEST_P(AttentionOps, BothKeyFormsInOneStep) {
  const TestStepBuilder scenario = mixed_scenario(KeyForm::kTurned, KeyForm::kRaw);
  check("both", scenario, {64, 2, 2, 64}, 0);
  check("both", scenario, {128, 1, 2, 64}, 0);
}

TEST_P(AttentionOps, Windows) {
  const TestStepBuilder turned = mixed_scenario(KeyForm::kTurned, KeyForm::kTurned);
  const TestStepBuilder raw = mixed_scenario(KeyForm::kRaw, KeyForm::kRaw);
  for (const int64_t window : {1, 16, 24, 200}) {
    check("turned", turned, {64, 2, 2, 64}, window);
    check("turned", turned, {80, 1, 3, 80}, window);
    check("raw", raw, {64, 1, 2, 32}, window);
  }
}

TEST_P(AttentionOps, WindowsLongerThanAnyContext) {
  const TestStepBuilder turned = mixed_scenario(KeyForm::kTurned, KeyForm::kTurned);
  for (const int64_t window : {int64_t{200'000}, (int64_t{1} << 32) + 5}) {
    check("turned", turned, {64, 2, 2, 64}, window);
    check("turned", turned, {80, 1, 3, 80}, window);
  }
}

TEST_P(AttentionOps, SampledRowsOnly) {
  const TestStepBuilder turned = mixed_scenario(KeyForm::kTurned, KeyForm::kTurned);
  for (const int64_t window : {0, 24}) {
    check("turned", turned, {64, 2, 2, 64}, window, RowSet::kSampled);
    check("turned", turned, {32, 1, 3, 16}, window, RowSet::kSampled);
  }
}

TEST_P(AttentionOps, RowsThatAreNotShared) {
  TestStepBuilder scenario = mixed_scenario(KeyForm::kTurned, KeyForm::kTurned);
  scenario.step.share_rows = false;
  check("turned", scenario, {64, 2, 2, 64}, 0);
}

TEST_P(AttentionOps, SharpScores) {
  const TestStepBuilder scenario = mixed_scenario(KeyForm::kTurned, KeyForm::kTurned);
  check("turned", scenario, {64, 1, 4, 64}, 0, RowSet::kAll, 8.0);
  check("turned", scenario, {128, 1, 2, 128}, 0, RowSet::kAll, 8.0);
}

TEST_P(AttentionOps, ScoreCaps) {
  if (GetParam().is_cuda) GTEST_SKIP() << "such models are refused there";
  const TestStepBuilder turned = mixed_scenario(KeyForm::kTurned, KeyForm::kTurned);
  const TestStepBuilder raw = mixed_scenario(KeyForm::kRaw, KeyForm::kRaw);
  for (const int64_t window : {0, 24}) {
    check("turned", turned, {64, 2, 2, 64}, window, RowSet::kAll, 1.0, 2.0F);
    check("turned", turned, {80, 1, 3, 80}, window, RowSet::kSampled, 8.0, 3.0F);
    check("raw", raw, {64, 1, 2, 32}, window, RowSet::kAll, 4.0, 50.0F);
  }
}

TEST_P(AttentionOps, LongDocuments) {
  const TestStepBuilder turned = long_scenario(KeyForm::kTurned);
  const TestStepBuilder raw = long_scenario(KeyForm::kRaw);
  check("long", turned, {64, 1, 2, 64}, 0);
  check("long", turned, {64, 2, 1, 64}, 2000);
  check("long raw", raw, {32, 1, 2, 32}, 0);
}

TEST_P(AttentionOps, AStepWithoutSampledRowsIsNoError) {
  TestStepBuilder scenario;
  scenario.begin_sequence();
  scenario.place(scenario.span(20, KeyForm::kTurned), 0);
  scenario.rows(0, 20);
  for (Row& row : scenario.step.rows) row.sample = false;
  check("nothing sampled", scenario, {64, 1, 2, 64}, 0, RowSet::kSampled);
}

INSTANTIATE_TEST_SUITE_P(Backends, AttentionOps, testing::ValuesIn(kv_cases()), case_name);

}  // namespace
}  // namespace anyslot::ops_test
