#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "backend/attention_plan.h"
#include "backend/cpu/attention_runner.h"
#include "backend/cpu/cpu_features.h"
#include "backend/cpu/cpu_kv_storage.h"
#include "backend/cpu/host_memory.h"
#include "backend/cpu/kernel_list.h"
#include "backend/cpu/kv_ops.h"
#include "backend/cpu/linear.h"
#include "backend/host_experts.h"
#include "backend/op_checks.h"
#include "backend/ops.h"
#include "base/thread_pool.h"

namespace anyslot {

namespace cpu {
namespace {

class CpuBuffer : public DeviceBuffer {
 public:
  explicit CpuBuffer(HostMemory memory) : memory_(std::move(memory)) {}
  void* data() override { return memory_.data(); }
  size_t size_bytes() const override { return memory_.size_bytes(); }

 private:
  HostMemory memory_;
};

/// The work plans of one window.
struct WindowPlans {
  int64_t window = 0;
  AttentionPlan all;
  AttentionPlan sampled;
};

class CpuBackend : public Backend {
 public:
  CpuBackend(const KernelTable& kernels, const BackendOptions& options)
      : kernels_(kernels),
        dtype_(options.dtype),
        int8_weights_(options.int8_weights),
        threads_(options.num_threads),
        attention_(kernels, threads_),
        kv_writer_(kernels, threads_) {}

  Status open_products();

  std::string_view name() const override { return "cpu"; }
  std::string description() const override;
  DType activation_dtype() const override { return dtype_; }

  Status check_needs(const ModelNeeds& needs) const override { return check_cpu_needs(needs); }

  Expected<std::unique_ptr<DeviceBuffer>> allocate(size_t bytes) override;
  Expected<std::unique_ptr<LinearWeight>> load_linear(std::span<const TensorView> parts) override;
  Expected<std::unique_ptr<KvStorage>> create_kv_storage(const KvShape& shape) override;
  Status begin_step(const StepPlan& plan, std::span<const int64_t> windows) override;
  Status end_step() override;
  Status copy_blocks(KvStorage& storage, std::span<const BlockCopy> copies,
                     std::span<const RopeTable* const> rope) override;
  Status embed(const TensorView& table, const TensorView& out) override;
  Status rms_norm(const TensorView& x, const float* weight, float epsilon,
                  const TensorView& out) override;
  Status rms_norm_parts(const TensorView& x, std::span<const float> weight, float epsilon) override;
  Status add_bias(const TensorView& x, std::span<const float> bias) override;
  Status scale(const TensorView& x, float factor, const TensorView& out) override;
  Status add_scaled(const TensorView& x, float factor, const TensorView& out) override;
  Status linear(const LinearWeight& weight, const TensorView& x, const TensorView& out,
                bool accumulate) override;
  Status write_kv(KvStorage& storage, int layer, const AttentionSpec& spec, const TensorView& k,
                  const TensorView& v) override;
  Status attention(const KvStorage& storage, int layer, const AttentionSpec& spec, RowSet rows,
                   const TensorView& q, const TensorView& out) override;
  Status gated(Activation activation, const TensorView& gate_up, const TensorView& out) override;
  Status soft_cap(const TensorView& x, float cap) override;
  Status choose_experts(const TensorView& logits, const ExpertChoice& choice,
                        ExpertRows& chosen) override;
  Status gather_rows(const TensorView& x, std::span<const int32_t> rows,
                     const TensorView& out) override;
  Status add_rows(const TensorView& x, std::span<const int32_t> rows, std::span<const float> shares,
                  const TensorView& out) override;
  Status gather_sampled(const TensorView& x, const TensorView& out) override;
  Status download(const TensorView& x, std::span<float> out) override;

 private:
  AttentionPlanOptions plan_options() const;
  template <typename RowFunction>
  void for_rows(int64_t rows, int64_t cols, const RowFunction& function);

  const KernelTable& kernels_;
  DType dtype_;
  bool int8_weights_;
  ThreadPool threads_;
  std::unique_ptr<LinearRunner> products_;
  AttentionRunner attention_;
  KvWriter kv_writer_;
  int num_kv_heads_ = 1;  // of the latest KV storage

  StepRows step_;
  AttentionPlanner planner_;
  std::vector<WindowPlans> plans_;  // the first num_windows_ are in use
  size_t num_windows_ = 0;
};

Status CpuBackend::open_products() {
  const bool multiplies_bfloat16 = dtype_ == DType::kBFloat16 &&
                                   kernels_.name == std::string_view("avx512_bf16") &&
                                   onednn_has_bfloat16();
  ProductTypes types;
  types.activation = dtype_;
  types.product = multiplies_bfloat16 ? DType::kBFloat16 : DType::kFloat32;
  types.stored = dtype_ == DType::kFloat32 ? StoredType::kFloat32 : StoredType::kBFloat16;
  if (int8_weights_) types.stored = StoredType::kInt8;
  Expected<std::unique_ptr<LinearRunner>> products =
      LinearRunner::create(kernels_, threads_, types);
  if (!products) return products.status();
  products_ = std::move(*products);
  return {};
}

std::string CpuBackend::description() const {
  const int num_threads = threads_.num_threads();
  return "cpu: " + std::string(kernels_.name) + " kernels, oneDNN " + onednn_version() + " (" +
         std::string(dtype_name(products_->types().product)) + " products" +
         (int8_weights_ ? ", int8 weights), " : "), ") + std::to_string(num_threads) +
         (num_threads == 1 ? " thread" : " threads");
}

/// Calls function(row) for all rows, on several threads when that is worth waking them.
template <typename RowFunction>
void CpuBackend::for_rows(int64_t rows, int64_t cols, const RowFunction& function) {
  constexpr int64_t kElementsOfTask = 8192;
  const int64_t rows_of_task = std::max<int64_t>(1, kElementsOfTask / std::max<int64_t>(1, cols));
  const auto run_task = [&](int64_t task) {
    const int64_t end = std::min(rows, (task + 1) * rows_of_task);
    for (int64_t r = task * rows_of_task; r < end; ++r) function(r);
  };
  threads_.parallel_for((rows + rows_of_task - 1) / rows_of_task,
                        [&run_task](int64_t task, int) { run_task(task); });
}

Expected<std::unique_ptr<DeviceBuffer>> CpuBackend::allocate(size_t bytes) {
  Expected<HostMemory> memory = HostMemory::allocate(bytes, "a buffer");
  if (!memory) return memory.status();
  return std::unique_ptr<DeviceBuffer>(std::make_unique<CpuBuffer>(std::move(*memory)));
}

Expected<std::unique_ptr<LinearWeight>> CpuBackend::load_linear(std::span<const TensorView> parts) {
  return products_->load(parts);
}

Expected<std::unique_ptr<KvStorage>> CpuBackend::create_kv_storage(const KvShape& shape) {
  Expected<std::unique_ptr<CpuKvStorage>> storage = CpuKvStorage::create(shape);
  if (!storage) return storage.status();
  num_kv_heads_ = shape.num_kv_heads;
  return std::unique_ptr<KvStorage>(std::move(*storage));
}

/// Tiles are cut until every thread has a task and no further: each cut costs its rows a partial
/// and a merge, up to a third of the time where contexts are short.
AttentionPlanOptions CpuBackend::plan_options() const {
  AttentionPlanOptions options;
  options.tile_rows = 16;
  options.appended_tokens = 256;
  const int tasks_of_item = AttentionRunner::tasks_of_item(num_kv_heads_);
  options.target_items = (threads_.num_threads() + tasks_of_item - 1) / tasks_of_item;
  return options;
}

Status CpuBackend::begin_step(const StepPlan& plan, std::span<const int64_t> windows) {
  threads_.begin_step();  // they wake while the work is planned
  step_.begin(plan);
  num_windows_ = windows.size();
  if (plans_.size() < num_windows_) plans_.resize(num_windows_);
  for (size_t w = 0; w < num_windows_; ++w) {
    WindowPlans& plans = plans_[w];
    plans.window = windows[w];
    planner_.plan(plan, step_.of(RowSet::kAll), windows[w], plan_options(), plans.all);
    if (!step_.all_are_sampled()) {
      planner_.plan(plan, step_.of(RowSet::kSampled), windows[w], plan_options(), plans.sampled);
    }
  }
  return {};
}

Status CpuBackend::end_step() {
  threads_.end_step();
  step_.end();
  return {};
}

Status CpuBackend::copy_blocks(KvStorage& storage, std::span<const BlockCopy> copies,
                               std::span<const RopeTable* const> rope) {
  if (Status status = check_copies(copies, rope, storage.shape()); !status) return status;
  if (!copies.empty()) kv_writer_.copy(static_cast<CpuKvStorage&>(storage), copies, rope);
  return {};
}

Status CpuBackend::embed(const TensorView& table, const TensorView& out) {
  if (Status status = step_.check_embed(table, out); !status) return status;
  for_rows(out.rows, out.cols, [&](int64_t r) {
    const int64_t token = step_.plan().rows[r].token_id;
    auto* to = out.row_as<float>(r);
    switch (table.dtype) {
      case DType::kFloat32:
        std::memcpy(to, table.row(token), table.row_bytes());
        break;
      case DType::kBFloat16:
        kernels_.widen(table.row_as<bf16_t>(token), to, table.cols);
        break;
      case DType::kFloat16:
      case DType::kFloat8E4M3:
        for (int64_t c = 0; c < table.cols; ++c) {
          to[c] = load_element(table.row(token), table.dtype, static_cast<size_t>(c));
        }
        break;
    }
  });
  return {};
}

Status CpuBackend::rms_norm(const TensorView& x, const float* weight, float epsilon,
                            const TensorView& out) {
  if (Status status = check_rms_norm(x, out, dtype_); !status) return status;
  for_rows(x.rows, x.cols, [&](int64_t r) {
    kernels_.rms_norm(x.row_as<float>(r), weight, epsilon, x.cols, dtype_, out.row(r));
  });
  return {};
}

Status CpuBackend::rms_norm_parts(const TensorView& x, std::span<const float> weight,
                                  float epsilon) {
  if (Status status = check_rms_norm_parts(x, weight); !status) return status;
  const auto part = static_cast<int64_t>(weight.size());
  for_rows(x.rows, x.cols, [&](int64_t r) {
    auto* row = x.row_as<float>(r);
    for (auto* at = row; at < row + x.cols; at += part) {
      kernels_.rms_norm(at, weight.data(), epsilon, part, DType::kFloat32, at);
    }
  });
  return {};
}

Status CpuBackend::add_bias(const TensorView& x, std::span<const float> bias) {
  if (Status status = check_add_bias(x, bias); !status) return status;
  for_rows(x.rows, x.cols, [&](int64_t r) {
    auto* row = x.row_as<float>(r);
    for (int64_t c = 0; c < x.cols; ++c) row[c] += bias[static_cast<size_t>(c)];
  });
  return {};
}

Status CpuBackend::scale(const TensorView& x, float factor, const TensorView& out) {
  if (Status status = check_scale(x, out, dtype_); !status) return status;
  for_rows(x.rows, x.cols, [&](int64_t r) {
    const auto* row = x.row_as<float>(r);
    if (out.dtype == DType::kFloat32) {
      for (int64_t c = 0; c < x.cols; ++c) out.row_as<float>(r)[c] = factor * row[c];
    } else {
      for (int64_t c = 0; c < x.cols; ++c)
        out.row_as<bf16_t>(r)[c] = float_to_bf16(factor * row[c]);
    }
  });
  return {};
}

Status CpuBackend::add_scaled(const TensorView& x, float factor, const TensorView& out) {
  if (Status status = check_add_scaled(x, out); !status) return status;
  for_rows(x.rows, x.cols, [&](int64_t r) {
    const auto* row = x.row_as<float>(r);
    auto* to = out.row_as<float>(r);
    for (int64_t c = 0; c < x.cols; ++c) to[c] += factor * row[c];
  });
  return {};
}

Status CpuBackend::linear(const LinearWeight& weight, const TensorView& x, const TensorView& out,
                          bool accumulate) {
  if (Status status = check_linear(weight, x, out, dtype_); !status) return status;
  return products_->run(static_cast<const PackedWeight&>(weight), x, out, accumulate);
}

Status CpuBackend::write_kv(KvStorage& storage, int layer, const AttentionSpec& spec,
                            const TensorView& k, const TensorView& v) {
  if (Status status = step_.check_write_kv(storage.shape(), layer, spec, k, v); !status) {
    return status;
  }
  kv_writer_.write(static_cast<CpuKvStorage&>(storage), layer, spec, step_.plan().rows, k, v);
  return {};
}

Status CpuBackend::attention(const KvStorage& storage, int layer, const AttentionSpec& spec,
                             RowSet rows, const TensorView& q, const TensorView& out) {
  if (Status status = step_.check_attention(storage.shape(), layer, spec, rows, q, out, dtype_);
      !status) {
    return status;
  }
  for (size_t w = 0; w < num_windows_; ++w) {
    if (plans_[w].window != spec.window) continue;
    const bool all = rows == RowSet::kAll || step_.all_are_sampled();
    return attention_.run({static_cast<const CpuKvStorage&>(storage), layer, spec, step_.plan(),
                           all ? plans_[w].all : plans_[w].sampled, q, out});
  }
  return unknown_window(spec.window);
}

Status CpuBackend::gated(Activation activation, const TensorView& gate_up, const TensorView& out) {
  if (Status status = check_gated(gate_up, out, dtype_); !status) return status;
  const auto kernel = activation == Activation::kSilu ? kernels_.gated_silu : kernels_.gated_gelu;
  for_rows(out.rows, out.cols, [&](int64_t r) {
    const auto* gate = gate_up.row_as<float>(r);
    kernel(gate, gate + out.cols, out.cols, dtype_, out.row(r));
  });
  return {};
}

Status CpuBackend::choose_experts(const TensorView& logits, const ExpertChoice& choice,
                                  ExpertRows& chosen) {
  if (Status status = begin_choice(logits, choice, chosen); !status) return status;
  for_rows(logits.rows, logits.cols * choice.per_row,
           [&](int64_t r) { choose_of_row(logits, choice, r, chosen); });
  group_by_expert(logits.cols, choice, chosen);
  return {};
}

Status CpuBackend::soft_cap(const TensorView& x, float cap) {
  if (Status status = check_soft_cap(x, cap); !status) return status;
  for_rows(x.rows, x.cols, [&](int64_t r) { kernels_.soft_cap(x.row_as<float>(r), x.cols, cap); });
  return {};
}

Status CpuBackend::gather_rows(const TensorView& x, std::span<const int32_t> rows,
                               const TensorView& out) {
  if (Status status = check_gather_rows(x, rows, out, dtype_); !status) return status;
  for_rows(out.rows, out.cols, [&](int64_t k) {
    std::memcpy(out.row(k), x.row(rows[static_cast<size_t>(k)]), x.row_bytes());
  });
  return {};
}

Status CpuBackend::add_rows(const TensorView& x, std::span<const int32_t> rows,
                            std::span<const float> shares, const TensorView& out) {
  if (Status status = check_add_rows(x, rows, shares, out); !status) return status;
  for_rows(x.rows, x.cols, [&](int64_t k) {
    const float share = shares[static_cast<size_t>(k)];
    const auto* from = x.row_as<float>(k);
    auto* to = out.row_as<float>(rows[static_cast<size_t>(k)]);
    for (int64_t c = 0; c < x.cols; ++c) to[c] += share * from[c];
  });
  return {};
}

Status CpuBackend::gather_sampled(const TensorView& x, const TensorView& out) {
  if (Status status = step_.check_gather_sampled(x, out); !status) return status;
  const std::vector<int32_t>& sampled = step_.of(RowSet::kSampled);
  for_rows(out.rows, out.cols,
           [&](int64_t r) { std::memcpy(out.row(r), x.row(sampled[r]), x.row_bytes()); });
  return {};
}

Status CpuBackend::download(const TensorView& x, std::span<float> out) {
  if (Status status = check_download(x, out); !status) return status;
  for_rows(x.rows, x.cols,
           [&](int64_t r) { std::memcpy(out.data() + r * x.cols, x.row(r), x.row_bytes()); });
  return {};
}

}  // namespace
}  // namespace cpu

Expected<std::unique_ptr<Backend>> create_cpu_backend(const BackendOptions& options) {
  if (options.dtype == DType::kFloat16) {
    return invalid_argument(
        "the CPU computes in bfloat16 or float32, not in float16: use --dtype bfloat16 (also for "
        "checkpoints in float16), or --device cuda");
  }
  const Expected<const cpu::KernelTable*> kernels =
      cpu::choose_kernels(options.max_isa, cpu::detect_cpu_features());
  if (!kernels) return kernels.status();
  cpu::limit_onednn(options.max_isa);
  auto backend = std::make_unique<cpu::CpuBackend>(**kernels, options);
  if (Status status = backend->open_products(); !status) return status;
  return std::unique_ptr<Backend>(std::move(backend));
}

}  // namespace anyslot
