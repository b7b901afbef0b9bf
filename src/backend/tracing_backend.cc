#include "backend/tracing_backend.h"

#include <algorithm>
#include <utility>

namespace anyslot {

namespace {

class TracingBackend : public Backend {
 public:
  TracingBackend(std::unique_ptr<Backend> inner, std::shared_ptr<TraceFile> trace)
      : inner_(std::move(inner)), trace_(std::move(trace)) {}

  std::string_view name() const override { return inner_->name(); }
  std::string description() const override { return inner_->description(); }
  DType activation_dtype() const override { return inner_->activation_dtype(); }
  Expected<std::optional<MemoryInfo>> device_memory() const override {
    return inner_->device_memory();
  }

  Status check_needs(const ModelNeeds& needs) const override { return inner_->check_needs(needs); }

  Expected<std::unique_ptr<DeviceBuffer>> allocate(size_t bytes) override {
    return inner_->allocate(bytes);
  }
  Expected<std::unique_ptr<LinearWeight>> load_linear(std::span<const TensorView> parts) override {
    return inner_->load_linear(parts);
  }
  Expected<std::unique_ptr<KvStorage>> create_kv_storage(const KvShape& shape) override {
    return inner_->create_kv_storage(shape);
  }

  Status begin_step(const StepPlan& plan, std::span<const int64_t> windows) override {
    num_rows_ = static_cast<int64_t>(plan.rows.size());
    num_sampled_ = std::ranges::count_if(plan.rows, [](const Row& row) { return row.sample; });
    kv_tokens_ = plan.kv_tokens_read;
    one_window_ = windows.size() == 1;
    const TraceSpan span(trace_.get(), "begin_step",
                         {{"rows", num_rows_},
                          {"placements", static_cast<int64_t>(plan.placements.size())},
                          {"windows", static_cast<int64_t>(windows.size())}});
    return inner_->begin_step(plan, windows);
  }
  Status end_step() override {
    const TraceSpan span(trace_.get(), "end_step");
    return inner_->end_step();
  }

  Status copy_blocks(KvStorage& storage, std::span<const BlockCopy> copies,
                     std::span<const RopeTable* const> rope) override {
    const TraceSpan span(
        trace_.get(), "copy_blocks",
        {{"blocks", static_cast<int64_t>(copies.size())}, {"layers", storage.shape().num_layers}});
    return inner_->copy_blocks(storage, copies, rope);
  }
  Status embed(const TensorView& table, const TensorView& out) override {
    const TraceSpan span(trace_.get(), "embed", {{"rows", out.rows}, {"cols", out.cols}});
    return inner_->embed(table, out);
  }
  Status rms_norm(const TensorView& x, const float* weight, float epsilon,
                  const TensorView& out) override {
    const TraceSpan span(trace_.get(), "rms_norm", {{"rows", x.rows}, {"cols", x.cols}});
    return inner_->rms_norm(x, weight, epsilon, out);
  }
  Status rms_norm_parts(const TensorView& x, std::span<const float> weight,
                        float epsilon) override {
    const TraceSpan span(trace_.get(), "rms_norm_parts", {{"rows", x.rows}, {"cols", x.cols}});
    return inner_->rms_norm_parts(x, weight, epsilon);
  }
  Status add_bias(const TensorView& x, std::span<const float> bias) override {
    const TraceSpan span(trace_.get(), "add_bias", {{"rows", x.rows}, {"cols", x.cols}});
    return inner_->add_bias(x, bias);
  }
  Status scale(const TensorView& x, float factor, const TensorView& out) override {
    const TraceSpan span(trace_.get(), "scale", {{"rows", x.rows}, {"cols", x.cols}});
    return inner_->scale(x, factor, out);
  }
  Status add_scaled(const TensorView& x, float factor, const TensorView& out) override {
    const TraceSpan span(trace_.get(), "add_scaled", {{"rows", x.rows}, {"cols", x.cols}});
    return inner_->add_scaled(x, factor, out);
  }
  Status linear(const LinearWeight& weight, const TensorView& x, const TensorView& out,
                bool accumulate) override {
    const TraceSpan span(trace_.get(), "linear",
                         {{"rows", x.rows},
                          {"in_features", weight.in_features()},
                          {"out_features", weight.out_features()},
                          {"accumulate", accumulate ? 1 : 0}});
    return inner_->linear(weight, x, out, accumulate);
  }
  Status write_kv(KvStorage& storage, int layer, const AttentionSpec& spec, const TensorView& k,
                  const TensorView& v) override {
    const TraceSpan span(trace_.get(), "write_kv",
                         {{"layer", layer}, {"rows", k.rows}, {"kv_heads", spec.num_kv_heads}});
    return inner_->write_kv(storage, layer, spec, k, v);
  }
  Status attention(const KvStorage& storage, int layer, const AttentionSpec& spec, RowSet rows,
                   const TensorView& q, const TensorView& out) override {
    TraceSpan span(trace_.get(), "attention",
                   {{"layer", layer},
                    {"rows", q.rows},
                    {"heads", spec.num_heads},
                    {"window", spec.window},
                    {"kv_tokens", kv_tokens_}});
    // Nobody counts what the sampled rows alone read, nor each window's reads where there are many.
    if (!one_window_ || (rows == RowSet::kSampled && num_sampled_ != num_rows_)) {
      span.set(
          {{"layer", layer}, {"rows", q.rows}, {"heads", spec.num_heads}, {"window", spec.window}});
    }
    return inner_->attention(storage, layer, spec, rows, q, out);
  }
  Status gated(Activation activation, const TensorView& gate_up, const TensorView& out) override {
    const char* name = activation == Activation::kSilu ? "gated_silu" : "gated_gelu";
    const TraceSpan span(trace_.get(), name, {{"rows", out.rows}, {"cols", out.cols}});
    return inner_->gated(activation, gate_up, out);
  }
  Status soft_cap(const TensorView& x, float cap) override {
    const TraceSpan span(trace_.get(), "soft_cap", {{"rows", x.rows}, {"cols", x.cols}});
    return inner_->soft_cap(x, cap);
  }
  Status choose_experts(const TensorView& logits, const ExpertChoice& choice,
                        ExpertRows& chosen) override {
    const TraceSpan span(
        trace_.get(), "choose_experts",
        {{"rows", logits.rows}, {"experts", logits.cols}, {"per_row", choice.per_row}});
    return inner_->choose_experts(logits, choice, chosen);
  }
  Status gather_rows(const TensorView& x, std::span<const int32_t> rows,
                     const TensorView& out) override {
    const TraceSpan span(trace_.get(), "gather_rows", {{"rows", out.rows}, {"cols", out.cols}});
    return inner_->gather_rows(x, rows, out);
  }
  Status add_rows(const TensorView& x, std::span<const int32_t> rows, std::span<const float> shares,
                  const TensorView& out) override {
    const TraceSpan span(trace_.get(), "add_rows", {{"rows", x.rows}, {"cols", x.cols}});
    return inner_->add_rows(x, rows, shares, out);
  }
  Status gather_sampled(const TensorView& x, const TensorView& out) override {
    const TraceSpan span(trace_.get(), "gather_sampled", {{"rows", out.rows}, {"cols", out.cols}});
    return inner_->gather_sampled(x, out);
  }
  Status download(const TensorView& x, std::span<float> out) override {
    const TraceSpan span(trace_.get(), "download", {{"rows", x.rows}, {"cols", x.cols}});
    return inner_->download(x, out);
  }
  Status argmax(const TensorView& x, std::span<int32_t> out) override {
    const TraceSpan span(trace_.get(), "argmax", {{"rows", x.rows}, {"cols", x.cols}});
    return inner_->argmax(x, out);
  }

 private:
  std::unique_ptr<Backend> inner_;
  std::shared_ptr<TraceFile> trace_;
  // Of the step at hand.
  int64_t num_rows_ = 0;
  int64_t num_sampled_ = 0;
  int64_t kv_tokens_ = 0;
  bool one_window_ = true;
};

}  // namespace

std::unique_ptr<Backend> create_tracing_backend(std::unique_ptr<Backend> inner,
                                                std::shared_ptr<TraceFile> trace) {
  return std::make_unique<TracingBackend>(std::move(inner), std::move(trace));
}

}  // namespace anyslot
