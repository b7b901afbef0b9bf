#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "anyslot/status.h"
#include "backend/kv_storage.h"
#include "backend/ops.h"
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
  /// Reads a Hugging Face folder: config.json and *.safetensors. The backend must outlive the
  /// decoder. Fails with kNotFound or kFailedPrecondition, in one line, for a folder that cannot be
  /// used.
  static Expected<std::unique_ptr<Decoder>> load(const std::string& model_dir, Backend& backend);
  static Expected<std::unique_ptr<Decoder>> load(std::unique_ptr<WeightSource> source,
                                                 const ModelConfig& config, Backend& backend);

  const ModelConfig& config() const { return config_; }
  int64_t num_parameters() const { return weights_.num_parameters; }
  /// Of weights, config and the type of activations: what keys of cached KV must cover.
  const Digest& fingerprint() const { return fingerprint_; }
  /// The KV pool that forward() needs.
  KvShape kv_shape(DType dtype, int64_t num_blocks) const;

  /// Runs one step. `logits` becomes [num_sampled, vocab], a row for each row with `sample`, in the
  /// plan's order; empty when nothing is sampled. A step may be only copies. Fails with
  /// kInvalidArgument for a token id outside the vocabulary, else with the backend's error;
  /// `logits` and the KV that the step was to write are then undefined.
  Status forward(const StepPlan& plan, KvStorage& kv, std::vector<float>& logits);

 private:
  Decoder(std::unique_ptr<WeightSource> source, const ModelConfig& config, Backend& backend);

  Status run_rows(const StepPlan& plan, int64_t num_sampled, KvStorage& kv,
                  std::span<float> logits);
  Status run_layer(int index, int64_t num_rows, KvStorage& kv);
  Status run_last_layer(int64_t num_rows, int64_t num_sampled, KvStorage& kv);
  Status run_mlp(const DecoderLayer& layer, const TensorView& residual);
  Status write_logits(int64_t num_sampled, std::span<float> logits);

  Backend& backend_;
  std::unique_ptr<WeightSource> source_;  // the embedding table may lie in it
  ModelConfig config_;
  DecoderWeights weights_;
  std::vector<const RopeTable*> layer_ropes_;
  std::vector<int64_t> windows_;  // distinct ones of the layers
  Workspace workspace_;
  Digest fingerprint_;
};

}  // namespace anyslot
