#include "attention_check.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <limits>
#include <map>
#include <set>
#include <utility>

namespace anyslot::bench {

namespace {

constexpr int64_t kMostKeys = 65'536;  // that the reference scores, for all rows together

int64_t num_keys_of(const StepPlan& plan, int32_t row) {
  const SequencePlan& sequence =
      plan.sequences[static_cast<size_t>(plan.rows[static_cast<size_t>(row)].sequence)];
  int64_t tokens = 0;
  for (int32_t p = sequence.placement_begin; p < sequence.placement_end; ++p) {
    tokens += plan.placements[static_cast<size_t>(p)].span.num_tokens;
  }
  return tokens;
}

float element(const TensorView& x, int64_t row, int64_t col) {
  return x.dtype == DType::kFloat32 ? x.row_as<float>(row)[col]
                                    : bf16_to_float(x.row_as<bf16_t>(row)[col]);
}

/// The step of some of its rows alone, with blocks numbered in the order of their first use.
class PartOfStep {
 public:
  PartOfStep(const StepPlan& plan, std::span<const int32_t> rows) {
    for (const int32_t row : rows) add_row(plan, row);
  }

  const StepPlan& plan() const { return plan_; }
  /// The whole step's block for each of the part's.
  const std::vector<BlockId>& blocks() const { return blocks_; }

 private:
  void add_row(const StepPlan& plan, int32_t index) {
    const Row& row = plan.rows[static_cast<size_t>(index)];
    const SequencePlan& whole = plan.sequences[static_cast<size_t>(row.sequence)];
    SequencePlan part;
    part.row_begin = static_cast<int32_t>(plan_.rows.size());
    part.placement_begin = static_cast<int32_t>(plan_.placements.size());
    for (int32_t p = whole.placement_begin; p < whole.placement_end; ++p) {
      Placement placement = plan.placements[static_cast<size_t>(p)];
      placement.span.blocks = renumbered(placement.span.blocks);
      plan_.placements.push_back(placement);
    }
    plan_.rows.push_back(row);
    plan_.rows.back().sequence = static_cast<int32_t>(plan_.sequences.size());
    part.row_end = part.row_begin + 1;
    part.placement_end = static_cast<int32_t>(plan_.placements.size());
    plan_.sequences.push_back(part);
  }

  std::span<const BlockId> renumbered(std::span<const BlockId> blocks) {
    std::vector<BlockId>& list = lists_.emplace_back();
    for (const BlockId block : blocks) {
      const auto [entry, is_new] =
          numbers_.try_emplace(block, static_cast<BlockId>(blocks_.size()));
      if (is_new) blocks_.push_back(block);
      list.push_back(entry->second);
    }
    return list;
  }

  StepPlan plan_;
  std::deque<std::vector<BlockId>> lists_;
  std::map<BlockId, BlockId> numbers_;
  std::vector<BlockId> blocks_;
};

Status copy_block(const KvStorage& from, BlockId source, KvStorage& to, BlockId target) {
  std::vector<std::byte> bytes(from.shape().block_bytes());
  if (Status status = from.export_block(source, bytes); !status.ok()) return status;
  const DType dtype = from.shape().dtype;
  std::vector<float> values(bytes.size() / dtype_size(dtype));
  for (size_t i = 0; i < values.size(); ++i) values[i] = load_element(bytes.data(), dtype, i);
  return to.import_block(target, std::as_bytes(std::span<const float>(values)));
}

}  // namespace

std::vector<int32_t> rows_to_check(const StepPlan& plan, int count) {
  const SequencePlan& first = plan.sequences.front();
  const SequencePlan& last = plan.sequences.back();
  std::set<int32_t> chosen;
  int64_t keys = 0;
  for (const int32_t row :
       {last.row_end - 1, first.row_begin, first.row_end - 1, last.row_begin,
        (first.row_begin + first.row_end) / 2, (last.row_begin + last.row_end) / 2}) {
    if (static_cast<int>(chosen.size()) >= count || chosen.contains(row)) continue;
    keys += num_keys_of(plan, row);
    if (!chosen.empty() && keys > kMostKeys) break;
    chosen.insert(row);
  }
  return {chosen.begin(), chosen.end()};
}

Expected<std::vector<float>> reference_attention(const StepPlan& plan,
                                                 std::span<const int32_t> rows,
                                                 const KvStorage& storage,
                                                 const AttentionSpec& spec, const TensorView& q) {
  const PartOfStep part(plan, rows);
  const std::unique_ptr<Backend> backend =
      create_reference_backend({.dtype = DType::kFloat32, .num_threads = 1, .max_isa = ""});
  KvShape shape = storage.shape();
  shape.dtype = DType::kFloat32;
  shape.num_blocks = static_cast<int64_t>(part.blocks().size());
  Expected<std::unique_ptr<KvStorage>> copy = backend->create_kv_storage(shape);
  if (!copy) return copy.status();
  for (size_t b = 0; b < part.blocks().size(); ++b) {
    Status status = copy_block(storage, part.blocks()[b], **copy, static_cast<BlockId>(b));
    if (!status.ok()) return status;
  }
  const auto num_rows = static_cast<int64_t>(rows.size());
  std::vector<float> queries(static_cast<size_t>(num_rows * q.cols));
  for (int64_t r = 0; r < num_rows; ++r) {
    std::memcpy(queries.data() + r * q.cols, q.row(rows[static_cast<size_t>(r)]), q.row_bytes());
  }
  std::vector<float> out(queries.size());
  const std::vector<int64_t> windows = {spec.window};
  if (Status status = backend->begin_step(part.plan(), windows); !status.ok()) return status;
  Status status = backend->attention(**copy, 0, spec, RowSet::kAll,
                                     {queries.data(), DType::kFloat32, num_rows, q.cols, q.cols},
                                     {out.data(), DType::kFloat32, num_rows, q.cols, q.cols});
  if (!status.ok()) return status;
  if (status = backend->end_step(); !status.ok()) return status;
  return out;
}

double largest_row_error(const TensorView& actual, std::span<const int32_t> rows,
                         std::span<const float> expected) {
  double largest = 0;
  for (size_t r = 0; r < rows.size(); ++r) {
    double error = 0;
    double length = 0;
    for (int64_t c = 0; c < actual.cols; ++c) {
      const double wanted = expected[r * static_cast<size_t>(actual.cols) + static_cast<size_t>(c)];
      const double difference = element(actual, rows[r], c) - wanted;
      error += difference * difference;
      length += wanted * wanted;
    }
    const double relative = std::sqrt(error / length);
    if (!std::isfinite(relative)) return std::numeric_limits<double>::infinity();
    largest = std::max(largest, relative);
  }
  return largest;
}

double row_error_bound(DType dtype, DType kv_dtype) {
  if (kv_dtype == DType::kFloat8E4M3) return std::ldexp(1.0, -4);
  return dtype == DType::kFloat32 ? 1e-5 : std::ldexp(1.0, -6);
}

}  // namespace anyslot::bench
