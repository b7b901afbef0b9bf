#include "model/decoder.h"

#include <algorithm>
#include <exception>
#include <span>
#include <utility>

#include "model/architecture.h"

namespace anyslot {

namespace {

Status check_token_ids(const StepPlan& plan, int64_t vocab_size) {
  for (const Row& row : plan.rows) {
    if (row.token_id < 0 || row.token_id >= vocab_size) {
      return invalid_argument("token id " + std::to_string(row.token_id) +
                              " is outside the model's vocabulary of " +
                              std::to_string(vocab_size));
    }
  }
  return {};
}

int64_t count_sampled(const StepPlan& plan) {
  return std::count_if(plan.rows.begin(), plan.rows.end(),
                       [](const Row& row) { return row.sample; });
}

/// The widest MLP of a layer or of an expert.
int64_t widest_mlp(const ModelConfig& config) {
  int64_t widest = config.experts.intermediate_size;
  for (int i = 0; i < config.num_layers; ++i) {
    if (!config.has_experts(i)) widest = std::max(widest, config.intermediate_size);
  }
  return widest;
}

/// A begun step of a backend. Leaving the scope ends it, also when an exception does: a backend's
/// threads wait for work busily until then.
class BegunStep {
 public:
  explicit BegunStep(Backend& backend) : backend_(&backend) {}
  ~BegunStep() {
    if (backend_ != nullptr) static_cast<void>(backend_->end_step());
  }
  BegunStep(const BegunStep&) = delete;
  BegunStep& operator=(const BegunStep&) = delete;

  Status end() { return std::exchange(backend_, nullptr)->end_step(); }

 private:
  Backend* backend_;
};

}  // namespace

Decoder::Decoder(std::unique_ptr<WeightSource> source, const ModelConfig& config, Backend& backend)
    : backend_(backend), source_(std::move(source)), config_(config) {}

Expected<std::unique_ptr<Decoder>> Decoder::load(const std::string& model_dir, Backend& backend,
                                                 int64_t max_model_len) {
  Expected<ModelConfig> config = load_model_config(model_dir, max_model_len);
  if (!config) return config.status();
  Expected<TensorStore> store = TensorStore::open(model_dir);
  if (!store) return store.status();
  return load(file_weights(std::move(*store)), *config, backend);
}

Expected<std::unique_ptr<Decoder>> Decoder::load(std::unique_ptr<WeightSource> source,
                                                 const ModelConfig& config, Backend& backend) {
  const Architecture* architecture = find_architecture(config.architecture);
  if (architecture == nullptr) {
    return failed_precondition("architecture " + config.architecture + " " +
                               why_unsupported(config.architecture));
  }
  std::unique_ptr<Decoder> decoder(new Decoder(std::move(source), config, backend));
  const ModelDescription description = architecture->describe(config);
  Expected<DecoderWeights> weights = load_decoder_weights(description, *decoder->source_, backend);
  if (!weights) return weights.status();
  decoder->weights_ = std::move(*weights);

  for (const DecoderLayer& layer : decoder->weights_.layers) {
    decoder->layer_ropes_.push_back(layer.attention.rope);
    std::vector<int64_t>& windows = decoder->windows_;
    if (std::ranges::find(windows, layer.attention.window) == windows.end()) {
      windows.push_back(layer.attention.window);
    }
  }
  decoder->workspace_ = Workspace({.hidden = config.hidden_size,
                                   .q = int64_t{config.num_heads} * config.head_dim,
                                   .kv = int64_t{config.num_kv_heads} * config.head_dim,
                                   .intermediate = widest_mlp(config),
                                   .num_experts = config.experts.num_experts,
                                   .vocab = config.vocab_size,
                                   .adds_directly = std::ranges::all_of(
                                       decoder->weights_.layers, &DecoderLayer::adds_directly)},
                                  backend.activation_dtype());
  try {
    decoder->fingerprint_ = DigestBuilder()
                                .add(decoder->source_->fingerprint())
                                .add(config.fingerprint())
                                .add(dtype_name(backend.activation_dtype()))
                                .finish();
  } catch (const std::exception& error) {
    return internal_error(error.what());
  }
  return decoder;
}

KvShape Decoder::kv_shape(DType dtype, int64_t num_blocks) const {
  return kv_shape_of(config_, dtype, num_blocks);
}

Status Decoder::reserve(int64_t num_rows) {
  return workspace_.reserve(backend_, num_rows, num_rows);
}

Status Decoder::forward(const StepPlan& plan, KvStorage& kv, std::vector<float>& logits) {
  const int64_t num_sampled = count_sampled(plan);
  const auto vocab = static_cast<size_t>(config_.vocab_size);
  logits.resize(static_cast<size_t>(num_sampled) * vocab);
  return run_step(plan, num_sampled, kv, [&](const TensorView& chunk, int64_t first_row) {
    return backend_.download(chunk,
                             std::span(logits).subspan(static_cast<size_t>(first_row) * vocab,
                                                       static_cast<size_t>(chunk.rows) * vocab));
  });
}

Status Decoder::forward_greedy(const StepPlan& plan, KvStorage& kv, std::vector<int32_t>& tokens) {
  const int64_t num_sampled = count_sampled(plan);
  tokens.resize(static_cast<size_t>(num_sampled));
  return run_step(plan, num_sampled, kv, [&](const TensorView& chunk, int64_t first_row) {
    return backend_.argmax(chunk, std::span(tokens).subspan(static_cast<size_t>(first_row),
                                                            static_cast<size_t>(chunk.rows)));
  });
}

Status Decoder::run_step(const StepPlan& plan, int64_t num_sampled, KvStorage& kv,
                         TakeLogits take) {
  if (Status status = check_token_ids(plan, config_.vocab_size); !status) return status;
  if (!plan.copies.empty()) {
    if (Status status = backend_.copy_blocks(kv, plan.copies, layer_ropes_); !status) return status;
  }
  if (plan.rows.empty()) return {};
  if (Status status = backend_.begin_step(plan, windows_); !status) return status;
  BegunStep step(backend_);
  const auto num_rows = static_cast<int64_t>(plan.rows.size());
  if (Status status = run_rows(num_rows, num_sampled, kv, take); !status) return status;
  return step.end();
}

Status Decoder::run_rows(int64_t num_rows, int64_t num_sampled, KvStorage& kv, TakeLogits take) {
  if (Status status = workspace_.reserve(backend_, num_rows, num_sampled); !status) return status;
  const TensorView residual = workspace_.residual.view(num_rows);
  if (Status status = backend_.embed(weights_.embedding.view, residual); !status) return status;
  if (const float factor = weights_.embedding_multiplier; factor != 1.0F) {
    if (Status status = backend_.scale(residual, factor, residual); !status) return status;
  }
  const auto layers = [&] { return run_layers(num_rows, num_sampled, kv); };
  // Steps that only decode come again and again, and differ in their plans alone.
  Status status =
      num_rows == num_sampled ? backend_.run_recorded({this, &kv, num_rows}, layers) : layers();
  if (!status || num_sampled == 0) return status;
  return give_logits(num_sampled, take);
}

Status Decoder::give_logits(int64_t num_sampled, TakeLogits take) {
  const TensorView residual = workspace_.sampled_residual.view(num_sampled);
  const TensorView normed = workspace_.normed.view(num_sampled);
  Status status =
      backend_.rms_norm(residual, weights_.final_norm.data(), config_.rms_norm_eps, normed);
  if (!status) return status;
  for (int64_t begin = 0; begin < num_sampled; begin += Workspace::kLogitsRows) {
    const int64_t count = std::min(num_sampled - begin, Workspace::kLogitsRows);
    const TensorView chunk = workspace_.logits.view(count);
    status = backend_.linear(*weights_.lm_head, normed.row_range(begin, count), chunk, false);
    if (status.ok() && weights_.logit_cap > 0)
      status = backend_.soft_cap(chunk, weights_.logit_cap);
    if (status.ok()) status = take(chunk, begin);
    if (!status) return status;
  }
  return {};
}

}  // namespace anyslot
