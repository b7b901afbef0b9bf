// The layers of a forward pass. What a layer does not have, a norm or a bias, is skipped.

#include <cstddef>
#include <span>
#include <vector>

#include "model/decoder.h"

namespace anyslot {

Status Decoder::run_layers(int64_t num_rows, int64_t num_sampled, KvStorage& kv) {
  for (int layer = 0; layer + 1 < config_.num_layers; ++layer) {
    if (Status status = run_layer(layer, num_rows, kv); !status) return status;
  }
  return run_last_layer(num_rows, num_sampled, kv);
}

Status Decoder::run_layer(int index, int64_t num_rows, KvStorage& kv) {
  const DecoderLayer& layer = weights_.layers[static_cast<size_t>(index)];
  const AttentionSpec& spec = layer.attention;
  const int64_t q_width = int64_t{spec.num_heads} * spec.head_dim;
  const int64_t kv_width = int64_t{spec.num_kv_heads} * spec.head_dim;
  const TensorView residual = workspace_.residual.view(num_rows);
  const TensorView normed = workspace_.normed.view(num_rows);
  const TensorView qkv = workspace_.qkv.view(num_rows);
  const TensorView q = qkv.col_range(0, q_width);
  const TensorView k = qkv.col_range(q_width, kv_width);
  const TensorView v = qkv.col_range(q_width + kv_width, kv_width);
  const TensorView attended = workspace_.attended.view(num_rows);

  Status status = enter(layer.attention_norm, residual, normed);
  if (status.ok()) status = multiply(layer.qkv, normed, qkv, false);
  if (status.ok()) status = normalize(layer.q_norm, q);
  if (status.ok()) status = normalize(layer.k_norm, k);
  if (status.ok()) status = backend_.write_kv(kv, index, spec, k, v);
  if (status.ok()) status = backend_.attention(kv, index, spec, RowSet::kAll, q, attended);
  if (status.ok()) {
    status = leave(layer, layer.o, attended, layer.attention_post_norm, residual);
  }
  return status.ok() ? run_mlp(layer, residual) : status;
}

Status Decoder::run_last_layer(int64_t num_rows, int64_t num_sampled, KvStorage& kv) {
  const int index = config_.num_layers - 1;
  const DecoderLayer& layer = weights_.layers.back();
  const AttentionSpec& spec = layer.attention;
  const int64_t kv_width = int64_t{spec.num_kv_heads} * spec.head_dim;
  const TensorView residual = workspace_.residual.view(num_rows);
  TensorView key_value = workspace_.qkv.view(num_rows);
  key_value.cols = key_value.row_stride = 2 * kv_width;
  const TensorView k = key_value.col_range(0, kv_width);
  const TensorView v = key_value.col_range(kv_width, kv_width);

  Status status = enter(layer.attention_norm, residual, workspace_.normed.view(num_rows));
  if (status.ok()) {
    status = multiply(layer.kv, workspace_.normed.view(num_rows), key_value, false);
  }
  if (status.ok()) status = normalize(layer.k_norm, k);
  if (status.ok()) status = backend_.write_kv(kv, index, spec, k, v);
  if (!status || num_sampled == 0) return status;

  const TensorView sampled = workspace_.sampled_residual.view(num_sampled);
  const TensorView normed = workspace_.normed.view(num_sampled);
  const TensorView q = workspace_.sampled_q.view(num_sampled);
  const TensorView attended = workspace_.attended.view(num_sampled);
  status = backend_.gather_sampled(residual, sampled);
  if (status.ok()) status = enter(layer.attention_norm, sampled, normed);
  if (status.ok()) status = multiply(layer.q, normed, q, false);
  if (status.ok()) status = normalize(layer.q_norm, q);
  if (status.ok()) status = backend_.attention(kv, index, spec, RowSet::kSampled, q, attended);
  if (status.ok()) {
    status = leave(layer, layer.o, attended, layer.attention_post_norm, sampled);
  }
  return status.ok() ? run_mlp(layer, sampled) : status;
}

Status Decoder::run_mlp(const DecoderLayer& layer, const TensorView& residual) {
  const TensorView normed = workspace_.normed.view(residual.rows);
  Status status = enter(layer.mlp_norm, residual, normed);
  if (!status) return status;
  if (!layer.experts.empty()) return run_experts(layer, normed, residual);
  const TensorView gate_up = workspace_.gate_up.view(residual.rows);
  const TensorView gated = workspace_.gated.view(residual.rows);
  status = multiply(layer.gate_up, normed, gate_up, false);
  if (status.ok()) status = backend_.gated(layer.activation, gate_up, gated);
  if (status.ok()) status = leave(layer, layer.down, gated, layer.mlp_post_norm, residual);
  return status;
}

/// Adds to each row what its experts make of it, one expert after the other.
Status Decoder::run_experts(const DecoderLayer& layer, const TensorView& normed,
                            const TensorView& residual) {
  const TensorView logits = workspace_.router_logits.view(residual.rows)
                                .col_range(0, static_cast<int64_t>(layer.experts.size()));
  Status status = multiply(layer.router, normed, logits, false);
  if (status.ok()) status = backend_.choose_experts(logits, layer.expert_choice, expert_rows_);
  for (size_t e = 0; status.ok() && e < layer.experts.size(); ++e) {
    status = run_expert(layer, e, normed, residual);
  }
  return status;
}

Status Decoder::run_expert(const DecoderLayer& layer, size_t expert, const TensorView& normed,
                           const TensorView& residual) {
  const auto begin = static_cast<size_t>(expert_rows_.begins[expert]);
  const size_t count = static_cast<size_t>(expert_rows_.begins[expert + 1]) - begin;
  if (count == 0) return {};
  const std::span<const int32_t> rows = std::span(expert_rows_.rows).subspan(begin, count);
  const std::span<const float> shares = std::span(expert_rows_.shares).subspan(begin, count);
  const ExpertWeights& weights = layer.experts[expert];
  const auto num_rows = static_cast<int64_t>(count);
  const int64_t width = weights.down.weight->in_features();
  const TensorView x = workspace_.expert_in.view(num_rows);
  const TensorView gate_up = workspace_.gate_up.view(num_rows).col_range(0, 2 * width);
  const TensorView gated = workspace_.gated.view(num_rows).col_range(0, width);
  const TensorView y = workspace_.expert_out.view(num_rows);
  Status status = backend_.gather_rows(normed, rows, x);
  if (status.ok()) status = multiply(weights.gate_up, x, gate_up, false);
  if (status.ok()) status = backend_.gated(layer.activation, gate_up, gated);
  if (status.ok()) status = multiply(weights.down, gated, y, false);
  if (status.ok()) status = backend_.add_rows(y, rows, shares, residual);
  return status;
}

/// What a half of a layer multiplies: the residual stream, normalized or, without a norm, as it is.
Status Decoder::enter(const std::vector<float>& norm, const TensorView& residual,
                      const TensorView& out) {
  if (norm.empty()) return backend_.scale(residual, 1.0F, out);
  return backend_.rms_norm(residual, norm.data(), config_.rms_norm_eps, out);
}

/// The last product of a half of a layer, and its sum with the residual stream.
Status Decoder::leave(const DecoderLayer& layer, const Projection& projection, const TensorView& x,
                      const std::vector<float>& norm, const TensorView& residual) {
  if (layer.adds_directly()) return multiply(projection, x, residual, true);
  const TensorView branch = workspace_.branch.view(residual.rows);
  Status status = multiply(projection, x, branch, false);
  if (status.ok()) status = normalize(norm, branch);
  if (status.ok()) status = backend_.add_scaled(branch, layer.residual_multiplier, residual);
  return status;
}

Status Decoder::multiply(const Projection& projection, const TensorView& x, const TensorView& out,
                         bool accumulate) {
  Status status = backend_.linear(*projection.weight, x, out, accumulate);
  if (!status || projection.bias.empty()) return status;
  return backend_.add_bias(out, projection.bias);
}

/// In place, the parts of a row that are as wide as the norm: heads, or a whole row. Without a norm
/// nothing happens.
Status Decoder::normalize(const std::vector<float>& norm, const TensorView& x) {
  if (norm.empty()) return {};
  return backend_.rms_norm_parts(x, norm, config_.rms_norm_eps);
}

}  // namespace anyslot
