#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "anyslot/status.h"
#include "backend/kv_storage.h"
#include "backend/ops.h"
#include "base/function_ref.h"
#include "base/hash.h"
#include "model/decoder_weights.h"
#include "model/model_config.h"
#include "model/weight_source.h"
#include "model/workspace.h"
#include "plan/step_plan.h"

namespace anyslot {

/// A decoder-only language model on a backend. One thread calls it.
class Decoder {
 public:
  /// Reads a Hugging Face folder: config.json and *.safetensors. max_model_len: see
  /// load_model_config. The backend must outlive the decoder. Fails with kNotFound or
  /// kFailedPrecondition, in one line, for a folder that cannot be used.
  static Expected<std::unique_ptr<Decoder>> load(const std::string& model_dir, Backend& backend,
                                                 int64_t max_model_len = 0);
  static Expected<std::unique_ptr<Decoder>> load(std::unique_ptr<WeightSource> source,
                                                 const ModelConfig& config, Backend& backend);

  const ModelConfig& config() const { return config_; }
  int64_t num_parameters() const { return weights_.num_parameters; }
  /// Of weights, config and the type of activations: what keys of cached KV must cover.
  const Digest& fingerprint() const { return fingerprint_; }
  /// The KV pool that forward() needs.
  KvShape kv_shape(DType dtype, int64_t num_blocks) const;

  /// Takes the working memory of steps of up to `num_rows` rows at once, so that what is left for
  /// the KV pool is known and no step runs out of memory.
  Status reserve(int64_t num_rows);

  /// Runs one step. `logits` becomes [num_sampled, vocab], a row for each row with `sample`, in the
  /// plan's order; empty when nothing is sampled. A step may be only copies. Fails with
  /// kInvalidArgument for a token id outside the vocabulary, else with the backend's error;
  /// `logits` and the KV that the step was to write are then undefined.
  Status forward(const StepPlan& plan, KvStorage& kv, std::vector<float>& logits);
  /// The same where only the likeliest tokens are wanted: `tokens` becomes [num_sampled], the first
  /// of equally likely ones, or -1 where a logit is not finite.
  Status forward_greedy(const StepPlan& plan, KvStorage& kv, std::vector<int32_t>& tokens);

 private:
  using TakeLogits = FunctionRef<Status(const TensorView& logits, int64_t first_row)>;

  Decoder(std::unique_ptr<WeightSource> source, const ModelConfig& config, Backend& backend);

  Status run_step(const StepPlan& plan, int64_t num_sampled, KvStorage& kv, TakeLogits take);
  Status run_rows(int64_t num_rows, int64_t num_sampled, KvStorage& kv, TakeLogits take);
  Status run_layers(int64_t num_rows, int64_t num_sampled, KvStorage& kv);
  Status run_layer(int index, int64_t num_rows, KvStorage& kv);
  Status run_last_layer(int64_t num_rows, int64_t num_sampled, KvStorage& kv);
  Status run_mlp(const DecoderLayer& layer, const TensorView& residual);
  Status run_experts(const DecoderLayer& layer, const TensorView& normed,
                     const TensorView& residual);
  Status run_expert(const DecoderLayer& layer, size_t expert, const TensorView& normed,
                    const TensorView& residual);
  Status enter(const std::vector<float>& norm, const TensorView& residual, const TensorView& out);
  Status leave(const DecoderLayer& layer, const Projection& projection, const TensorView& x,
               const std::vector<float>& norm, const TensorView& residual);
  Status multiply(const Projection& projection, const TensorView& x, const TensorView& out,
                  bool accumulate);
  Status normalize(const std::vector<float>& norm, const TensorView& x);
  Status give_logits(int64_t num_sampled, TakeLogits take);

  Backend& backend_;
  std::unique_ptr<WeightSource> source_;  // the embedding table may lie in it
  ModelConfig config_;
  DecoderWeights weights_;
  std::vector<const RopeTable*> layer_ropes_;
  std::vector<int64_t> windows_;  // distinct ones of the layers
  Workspace workspace_;
  ExpertRows expert_rows_;
  Digest fingerprint_;
};

}  // namespace anyslot
