#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "backend/ops_test_support.h"
#include "backend/test_step_builder.h"

// Layers with a window, as the methods keep documents, against attention in float64 as it is
// defined: query by query and key by key, over positions of the prompt.

namespace anyslot::ops_test {
namespace {

constexpr int kHeads = 4;
constexpr int kKvHeads = 2;
constexpr int kHeadDim = 32;
constexpr int kRotaryDim = 32;
constexpr int64_t kKvCols = int64_t{kKvHeads} * kHeadDim;
constexpr int64_t kQCols = int64_t{kHeads} * kHeadDim;
constexpr double kError = 1e-5;

enum class Keeping : uint8_t { kLazy, kBlock, kMepic };
constexpr Keeping kKeepings[] = {Keeping::kLazy, Keeping::kBlock, Keeping::kMepic};
constexpr const char* kKeepingNames[] = {"lazy", "block", "mepic"};

/// Tokens in their order, K and V of each, K not turned.
struct Tokens {
  int64_t count = 0;
  std::vector<float> keys;    // [count, kKvCols]
  std::vector<float> values;  // [count, kKvCols]

  Tokens(Random& random, int64_t length)
      : count(length),
        keys(random.normal(length * kKvCols)),
        values(random.normal(length * kKvCols)) {}
};

/// Documents of a common set, each in a slot, and a text behind them.
struct Prompt {
  std::vector<int> documents;
  Tokens text;
};

/// One layer, its documents and prompts.
struct Case {
  std::vector<Tokens> documents;
  std::vector<Prompt> prompts;
  int64_t window = 0;
  double score_cap = 0;

  explicit Case(uint32_t seed) {
    Random random(seed);
    const int num_documents = random.pick(1, 5);
    for (int d = 0; d < num_documents; ++d) documents.emplace_back(random, random.pick(1, 70));
    const int num_prompts = random.pick(1, 4);
    for (int p = 0; p < num_prompts; ++p) {
      prompts.push_back({{}, Tokens(random, random.pick(1, 24))});
      const int num_slots = random.pick(1, 5);
      for (int s = 0; s < num_slots; ++s) {
        prompts.back().documents.push_back(random.pick(0, num_documents - 1));
      }
    }
    // Within a block, within a document, across documents, and longer than any prompt.
    constexpr int kLongest[] = {16, 70, 200, 1000};
    window = seed % 6 == 0 ? 1 : random.pick(1, kLongest[seed % 4]);
  }
};

/// What a query attends to: a document alone, or a whole prompt.
struct Context {
  std::vector<const Tokens*> parts;

  const float* at(int64_t position, std::vector<float> Tokens::*what) const {
    for (const Tokens* part : parts) {
      if (position < part->count) return (part->*what).data() + position * kKvCols;
      position -= part->count;
    }
    ADD_FAILURE() << "no token stands there";
    return nullptr;
  }
};

/// The score of a query at p and a key at i, which are both turned by their positions.
double turned_score(const float* q, int64_t p, const float* k, int64_t i,
                    const RopeParameters& rope) {
  double score = 0;
  const auto pairs = static_cast<int>(rope.inv_freq.size());
  for (int j = 0; j < pairs; ++j) {
    const auto turned = [&](const float* x, int64_t position, double& first, double& second) {
      const double angle = static_cast<double>(position) * rope.inv_freq[j];
      first = x[j] * std::cos(angle) - x[j + pairs] * std::sin(angle);
      second = x[j + pairs] * std::cos(angle) + x[j] * std::sin(angle);
    };
    double q_first = 0;
    double q_second = 0;
    double k_first = 0;
    double k_second = 0;
    turned(q, p, q_first, q_second);
    turned(k, i, k_first, k_second);
    score += q_first * k_first + q_second * k_second;
  }
  for (int d = 2 * pairs; d < kHeadDim; ++d) score += double{q[d]} * k[d];
  return score;
}

/// One head of one query, by the definition.
std::vector<double> attend(const Case& layer, const AttentionSpec& spec, const Context& context,
                           const float* q, int64_t p, int kv_head) {
  std::vector<double> sum(kHeadDim);
  double total = 0;
  for (int64_t i = 0; i <= p; ++i) {
    if (layer.window > 0 && i <= p - layer.window) continue;
    const float* key = context.at(i, &Tokens::keys) + kv_head * kHeadDim;
    double score = spec.scale * turned_score(q, p, key, i, spec.rope->parameters());
    if (layer.score_cap > 0) score = layer.score_cap * std::tanh(score / layer.score_cap);
    const float* value = context.at(i, &Tokens::values) + kv_head * kHeadDim;
    const double weight = std::exp(score);  // scores are small
    total += weight;
    for (int d = 0; d < kHeadDim; ++d) sum[d] += weight * value[d];
  }
  for (double& element : sum) element /= total;
  return sum;
}

/// A step that writes tokens, and then the step whose attention is looked at.
class Steps {
 public:
  Steps(const Case& layer, Keeping keeping) : layer_(layer), keeping_(keeping) {
    for (const Tokens& document : layer.documents) {
      documents_.push_back(builder_.span(document.count, form()));
      add_writes(document, documents_.back());
      add_rows({{&document}}, 0, [&] { builder_.place(documents_.back(), 0); });
    }
    for (const Prompt& prompt : layer.prompts) add_prompt(prompt);
  }

  const StepPlan& writes() const { return writes_; }
  const StepPlan& reads() const { return builder_.step; }
  const std::vector<BlockCopy>& copies() const { return copies_; }
  BlockId num_blocks() const { return builder_.num_blocks(); }
  std::vector<float> keys;
  std::vector<float> values;
  std::vector<Context> contexts;  // of each row of reads()

 private:
  KeyForm form() const { return keeping_ == Keeping::kMepic ? KeyForm::kRaw : KeyForm::kTurned; }

  void add_prompt(const Prompt& prompt) {
    Context context;
    int64_t position = 0;
    std::vector<SpanView> spans;
    std::vector<int64_t> starts;
    for (const int d : prompt.documents) {
      context.parts.push_back(&layer_.documents[d]);
      spans.push_back(keeping_ == Keeping::kBlock ? copied(documents_[d], position)
                                                  : documents_[d]);
      starts.push_back(position);
      position += layer_.documents[d].count;
    }
    context.parts.push_back(&prompt.text);
    spans.push_back(builder_.span(prompt.text.count));
    starts.push_back(position);
    add_writes(prompt.text, spans.back());
    add_rows(context, position, [&] {
      for (size_t s = 0; s < spans.size(); ++s) builder_.place(spans[s], starts[s]);
    });
  }

  /// A private copy whose keys are turned on to where the document stands.
  SpanView copied(const SpanView& document, int64_t start) {
    const SpanView copy = builder_.span(document.num_tokens, KeyForm::kTurned, start);
    for (size_t b = 0; b < copy.blocks.size(); ++b) {
      copies_.push_back({document.blocks[b], copy.blocks[b], kBlockSize, start});
    }
    return copy;
  }

  void add_writes(const Tokens& tokens, const SpanView& span) {
    for (int64_t i = 0; i < tokens.count; ++i) {
      const int64_t slot = int64_t{span.blocks[i / kBlockSize]} * kBlockSize + i % kBlockSize;
      writes_.rows.push_back({0, i, slot, span.key_form == KeyForm::kRaw ? 0 : i, 0, false});
    }
    writes_.sequences = {{0, static_cast<int32_t>(writes_.rows.size()), 0, 0}};
    keys.insert(keys.end(), tokens.keys.begin(), tokens.keys.end());
    values.insert(values.end(), tokens.values.begin(), tokens.values.end());
  }

  /// Rows for all tokens of the context from `begin` on.
  template <typename Place>
  void add_rows(const Context& context, int64_t begin, const Place& place) {
    builder_.begin_sequence();
    place();
    for (int64_t i = 0; i < context.parts.back()->count; ++i) {
      builder_.row(begin + i);
      contexts.push_back(context);
    }
  }

  const Case& layer_;
  Keeping keeping_;
  TestStepBuilder builder_;
  std::vector<SpanView> documents_;
  StepPlan writes_;
  std::vector<BlockCopy> copies_;
};

class WindowOps : public OpsTest {
 protected:
  std::vector<float> run(const Steps& steps, const AttentionSpec& spec,
                         const std::vector<float>& q) {
    const auto num_writes = static_cast<int64_t>(steps.writes().rows.size());
    const auto num_rows = static_cast<int64_t>(steps.reads().rows.size());
    const auto storage =
        storage_of(backend(), {1, kKvHeads, kHeadDim, dtype(), steps.num_blocks()});
    const Tensor out(backend(), num_rows, kQCols, dtype());
    const std::vector<int64_t> windows = {spec.window};
    const std::vector<const RopeTable*> ropes = {spec.rope};
    const auto expect_ok = [](const Status& status) {
      EXPECT_TRUE(status.ok()) << status.message();
    };
    expect_ok(backend().begin_step(steps.writes(), windows));
    expect_ok(backend().write_kv(
        *storage, 0, spec, Tensor(backend(), num_writes, kKvCols, DType::kFloat32, steps.keys),
        Tensor(backend(), num_writes, kKvCols, DType::kFloat32, steps.values)));
    expect_ok(backend().end_step());
    expect_ok(backend().copy_blocks(*storage, steps.copies(), ropes));
    expect_ok(backend().begin_step(steps.reads(), windows));
    expect_ok(backend().attention(*storage, 0, spec, RowSet::kAll,
                                  Tensor(backend(), num_rows, kQCols, DType::kFloat32, q), out));
    expect_ok(backend().end_step());
    return out.values();
  }

  void check(const Case& layer, uint32_t seed) {
    const RopeTable rope(rope_parameters(kRotaryDim));
    const AttentionSpec spec{kHeads,
                             kKvHeads,
                             kHeadDim,
                             0.25F,
                             layer.window,
                             &rope,
                             static_cast<float>(layer.score_cap)};
    std::vector<float> expected;
    for (size_t keeping = 0; keeping < std::size(kKeepings); ++keeping) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << ", window " << layer.window << ", cap "
                                      << layer.score_cap << ", " << kKeepingNames[keeping]);
      const Steps steps(layer, kKeepings[keeping]);
      const std::vector<Row>& rows = steps.reads().rows;
      const std::vector<float> q =
          Random(seed + 1000).normal(static_cast<int64_t>(rows.size()) * kQCols);
      for (size_t r = 0; expected.size() < q.size() && r < rows.size(); ++r) {
        for (int h = 0; h < kHeads; ++h) {
          const float* head = q.data() + static_cast<int64_t>(r) * kQCols + h * kHeadDim;
          for (const double element : attend(layer, spec, steps.contexts[r], head, rows[r].position,
                                             h / (kHeads / kKvHeads))) {
            expected.push_back(static_cast<float>(element));
          }
        }
      }
      expect_rows_near(run(steps, spec, q), expected, kQCols, kError);
    }
  }
};

TEST_P(WindowOps, LazyBlockAndMepicDoWhatTheDefinitionSays) {
  for (uint32_t seed = 0; seed < 24; ++seed) {
    Case layer(seed);
    check(layer, seed);
    if (testing::Test::HasFailure()) return;
  }
}

TEST_P(WindowOps, WithCapsToo) {
  if (GetParam().is_cuda) GTEST_SKIP() << "such models are refused there";
  for (uint32_t seed = 100; seed < 112; ++seed) {
    Case layer(seed);
    layer.score_cap = seed % 2 == 0 ? 1.5 : 50;
    if (seed % 3 == 0) layer.window = 0;
    check(layer, seed);
    if (testing::Test::HasFailure()) return;
  }
}

std::vector<BackendCase> float32_cases() {
  std::vector<BackendCase> cases = backend_cases();
  std::erase_if(cases, [](const BackendCase& c) { return c.options.dtype != DType::kFloat32; });
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Backends, WindowOps, testing::ValuesIn(float32_cases()), case_name);

}  // namespace
}  // namespace anyslot::ops_test
