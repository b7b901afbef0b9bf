#include "backend/reference/reference_attention.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "backend/reference/elements.h"

namespace anyslot::reference {

namespace {

/// A key that a row sees.
struct VisibleKey {
  double score;
  int64_t slot;
};

double dot(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

double capped(double score, double cap) { return cap > 0 ? cap * std::tanh(score / cap) : score; }

bool is_visible(int64_t distance, int64_t token, int64_t window) {
  return token <= distance && (window == 0 || token > distance - window);
}

/// `query` as it meets the keys of the placement.
std::vector<double> turned_query(std::vector<double> query, const RopeParameters& rope,
                                 const Placement& placement, int64_t position) {
  const bool raw = placement.span.key_form == KeyForm::kRaw;
  turn(query, rope, raw ? position : position - placement.start + placement.span.first_angle);
  for (size_t i = 0; i < 2 * rope.inv_freq.size(); ++i) query[i] *= rope.attention_factor;
  return query;
}

std::vector<VisibleKey> visible_keys(const ReferenceKvStorage& storage, int layer, int kv_head,
                                     const AttentionSpec& spec,
                                     std::span<const Placement> placements, int64_t position,
                                     const std::vector<double>& query) {
  const RopeParameters& rope = spec.rope->parameters();
  std::vector<VisibleKey> keys;
  for (const Placement& placement : placements) {
    const std::vector<double> turned = turned_query(query, rope, placement, position);
    for (int64_t i = placement.begin; i < placement.end; ++i) {
      if (!is_visible(position - placement.start, i, spec.window)) continue;
      const int64_t block = placement.span.blocks[i / kBlockSize];
      const int64_t slot = block * kBlockSize + i % kBlockSize;
      std::vector<double> key = storage.load(layer, KvPart::kKey, kv_head, slot);
      if (placement.span.key_form == KeyForm::kRaw) turn(key, rope, placement.start + i);
      keys.push_back({capped(dot(turned, key) * spec.scale, spec.score_cap), slot});
    }
  }
  return keys;
}

/// The values of the keys, weighted by the softmax of their scores; 0 without keys.
std::vector<double> weighted_values(const ReferenceKvStorage& storage, int layer, int kv_head,
                                    std::span<const VisibleKey> keys) {
  std::vector<double> sum(storage.shape().head_dim, 0.0);
  if (keys.empty()) return sum;
  const double largest = std::ranges::max(keys, {}, &VisibleKey::score).score;
  double total = 0;
  for (const VisibleKey& key : keys) {
    const double weight = std::exp(key.score - largest);
    const std::vector<double> value = storage.load(layer, KvPart::kValue, kv_head, key.slot);
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += weight * value[i];
    total += weight;
  }
  for (double& element : sum) element /= total;
  return sum;
}

}  // namespace

void write_kv(ReferenceKvStorage& storage, int layer, const AttentionSpec& spec,
              std::span<const Row> rows, const TensorView& k, const TensorView& v) {
  for (size_t r = 0; r < rows.size(); ++r) {
    for (int head = 0; head < spec.num_kv_heads; ++head) {
      const int64_t begin = int64_t{head} * spec.head_dim;
      std::vector<double> key = load_row(k, r, begin, spec.head_dim);
      turn(key, spec.rope->parameters(), rows[r].write_angle);
      storage.store(layer, KvPart::kKey, head, rows[r].write_slot, key);
      storage.store(layer, KvPart::kValue, head, rows[r].write_slot,
                    load_row(v, r, begin, spec.head_dim));
    }
  }
}

void attention(const ReferenceKvStorage& storage, int layer, const AttentionSpec& spec,
               const StepPlan& step, std::span<const int32_t> row_indices, const TensorView& q,
               const TensorView& out) {
  const int group = spec.num_heads / spec.num_kv_heads;
  for (size_t k = 0; k < row_indices.size(); ++k) {
    const Row& row = step.rows[row_indices[k]];
    const SequencePlan& sequence = step.sequences[row.sequence];
    const std::span<const Placement> placements(step.placements.data() + sequence.placement_begin,
                                                step.placements.data() + sequence.placement_end);
    for (int head = 0; head < spec.num_heads; ++head) {
      const int64_t begin = int64_t{head} * spec.head_dim;
      const std::vector<VisibleKey> keys =
          visible_keys(storage, layer, head / group, spec, placements, row.position,
                       load_row(q, k, begin, spec.head_dim));
      store_row(out, k, begin, weighted_values(storage, layer, head / group, keys));
    }
  }
}

void copy_blocks(ReferenceKvStorage& storage, std::span<const BlockCopy> copies,
                 std::span<const RopeTable* const> rope) {
  const KvShape& shape = storage.shape();
  for (const BlockCopy& copy : copies) {
    for (int layer = 0; layer < shape.num_layers; ++layer) {
      for (int head = 0; head < shape.num_kv_heads; ++head) {
        for (int64_t token = 0; token < copy.num_tokens; ++token) {
          const int64_t src = int64_t{copy.src} * kBlockSize + token;
          const int64_t dst = int64_t{copy.dst} * kBlockSize + token;
          std::vector<double> key = storage.load(layer, KvPart::kKey, head, src);
          turn(key, rope[layer]->parameters(), copy.turn_by);
          storage.store(layer, KvPart::kKey, head, dst, key);
          storage.store(layer, KvPart::kValue, head, dst,
                        storage.load(layer, KvPart::kValue, head, src));
        }
      }
    }
  }
}

}  // namespace anyslot::reference
