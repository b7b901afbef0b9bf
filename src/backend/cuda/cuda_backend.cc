#include "backend/cuda/cuda_backend.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backend/attention_plan.h"
#include "backend/cuda/attention_runner.h"
#include "backend/cuda/block_copier.h"
#include "backend/cuda/cuda_check.h"
#include "backend/cuda/cuda_kv_storage.h"
#include "backend/cuda/elementwise.h"
#include "backend/cuda/linear.h"
#include "backend/cuda/step_data.h"
#include "backend/cuda/step_recorder.h"
#include "backend/op_checks.h"

namespace anyslot {

namespace cuda {
namespace {

/// Rows x heads of the largest attention tile.
constexpr int kTileRows = 128;

struct DestroyStream {
  void operator()(cudaStream_t stream) const { cudaStreamDestroy(stream); }
};
using Stream = std::unique_ptr<CUstream_st, DestroyStream>;

/// A vector of the host on the device, copied again when it has changed.
struct MirroredVector {
  std::vector<float> host;
  DeviceMemory device;
};

struct WindowPlans {
  DevicePlan all;
  DevicePlan sampled;
};

class CudaBackend : public Backend {
 public:
  CudaBackend(const cudaDeviceProp& device, DType dtype, const CudaOptions& options)
      : device_(device),
        dtype_(dtype),
        stream_(options.stream),
        attention_(device.multiProcessorCount, options.tensor_cores, device.major >= 9) {}
  ~CudaBackend() override { cudaStreamSynchronize(stream_); }

  Status open();

  std::string_view name() const override { return "cuda"; }
  std::string description() const override;
  DType activation_dtype() const override { return dtype_; }
  std::optional<MemoryInfo> device_memory() const override;

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
  Status linear(const LinearWeight& weight, const TensorView& x, const TensorView& out,
                bool accumulate) override;
  Status write_kv(KvStorage& storage, int layer, const AttentionSpec& spec, const TensorView& k,
                  const TensorView& v) override;
  Status attention(const KvStorage& storage, int layer, const AttentionSpec& spec, RowSet rows,
                   const TensorView& q, const TensorView& out) override;
  Status gated_silu(const TensorView& gate_up, const TensorView& out) override;
  Status gather_sampled(const TensorView& x, const TensorView& out) override;
  Status download(const TensorView& x, std::span<float> out) override;
  Status argmax(const TensorView& x, std::span<int32_t> out) override;
  Status run_recorded(const RecordKey& key, FunctionRef<Status()> work) override;

 private:
  int64_t num_rows() const { return static_cast<int64_t>(all_rows_.size()); }
  int64_t num_sampled() const { return static_cast<int64_t>(sampled_rows_.size()); }
  Status check_step() const;
  AttentionPlanOptions plan_options() const;
  void count_tiles(const StepPlan& plan);
  Expected<const float*> mirrored(const float* values, int64_t count);
  Status wait_for_copies();
  StepRecorder::Facts record_facts(const RecordKey& key) const;

  cudaDeviceProp device_;
  DType dtype_;
  Stream own_stream_;
  cudaStream_t stream_;
  std::unique_ptr<LinearRunner> products_;
  AttentionRunner attention_;
  int num_kv_heads_ = 1;   // of the latest KV storage
  int64_t num_tiles_ = 0;  // of the step
  bool has_wide_tiles_ = false;
  int num_heads_ = 4;  // of the latest attention
  int group_ = 4;
  int head_dim_ = 0;

  StepRecorder recorder_;
  bool recording_ = false;
  uint64_t memory_version_ = 0;  // grows with everything that others may hold in device memory

  const StepPlan* step_ = nullptr;
  std::vector<int32_t> all_rows_;
  std::vector<int32_t> sampled_rows_;
  AttentionPlanner planner_;
  AttentionPlan plan_;
  StepData data_;
  std::vector<WindowPlans> plans_;

  BlockCopier copier_;
  std::map<const float*, MirroredVector> mirrors_;
  PinnedMemory staging_;
  DeviceMemory staged_;
  Event staging_free_;
  DeviceMemory tokens_;
  PinnedMemory host_tokens_;
};

Status CudaBackend::open() {
  if (stream_ == nullptr) {
    cudaStream_t stream = nullptr;
    if (Status status = cuda_status(cudaStreamCreate(&stream), "opening a stream"); !status) {
      return status;
    }
    own_stream_.reset(stream);
    stream_ = stream;
  }
  Expected<std::unique_ptr<LinearRunner>> products = LinearRunner::create(dtype_);
  if (!products) return products.status();
  products_ = std::move(*products);
  if (Status status = copier_.open(); !status) return status;
  return attention_.open();
}

std::optional<MemoryInfo> CudaBackend::device_memory() const {
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  cudaMemGetInfo(&free_bytes, &total_bytes);
  return MemoryInfo{static_cast<int64_t>(free_bytes), static_cast<int64_t>(total_bytes)};
}

std::string CudaBackend::description() const {
  return "cuda: " + std::string(device_.name) + ", " + std::to_string(device_.multiProcessorCount) +
         " multiprocessors, cuBLASLt (" + std::string(dtype_name(dtype_)) + " products)";
}

Status CudaBackend::check_step() const {
  return step_ != nullptr ? Status() : invalid_argument("no step: begin_step comes first");
}

Expected<std::unique_ptr<DeviceBuffer>> CudaBackend::allocate(size_t bytes) {
  ++memory_version_;
  DeviceMemory memory;
  if (Status status = memory.reserve(bytes, "a buffer"); !status) return status;
  if (Status status = memory.clear(); !status) return status;
  return std::unique_ptr<DeviceBuffer>(std::make_unique<CudaBuffer>(std::move(memory), bytes));
}

Expected<std::unique_ptr<LinearWeight>> CudaBackend::load_linear(
    std::span<const TensorView> parts) {
  ++memory_version_;
  return products_->load(parts);
}

Expected<std::unique_ptr<KvStorage>> CudaBackend::create_kv_storage(const KvShape& shape) {
  Expected<std::unique_ptr<CudaKvStorage>> storage = CudaKvStorage::create(shape);
  if (!storage) return storage.status();
  ++memory_version_;
  num_kv_heads_ = shape.num_kv_heads;
  return std::unique_ptr<KvStorage>(std::move(*storage));
}

/// Few rows are bound by memory: two items per multiprocessor keep more of it in flight. So are two
/// better when the tiles fill the machine anyway; in between, further cuts cost more than they
/// give.
AttentionPlanOptions CudaBackend::plan_options() const {
  const int processors = device_.multiProcessorCount;
  const bool one_each = has_wide_tiles_ && num_tiles_ * num_kv_heads_ < processors;
  AttentionPlanOptions options;
  options.tile_rows = std::max(1, kTileRows / group_);
  options.target_items = std::max(1, (one_each ? 1 : 2) * processors / num_kv_heads_);
  options.min_item_tokens = 128;
  if (one_each) options.cut_tokens = kWideStageTokens;  // what the kernel takes at a time
  return options;
}

void CudaBackend::count_tiles(const StepPlan& plan) {
  num_tiles_ = 0;
  has_wide_tiles_ = false;
  for (const SequencePlan& sequence : plan.sequences) {
    const int64_t rows = int64_t{sequence.row_end - sequence.row_begin} * group_;
    num_tiles_ += (rows + kTileRows - 1) / kTileRows;
    has_wide_tiles_ = has_wide_tiles_ || rows > kNarrowRows;
  }
}

Status CudaBackend::begin_step(const StepPlan& plan, std::span<const int64_t> windows) {
  step_ = nullptr;
  all_rows_.clear();
  sampled_rows_.clear();
  for (size_t r = 0; r < plan.rows.size(); ++r) {
    all_rows_.push_back(static_cast<int32_t>(r));
    if (plan.rows[r].sample) sampled_rows_.push_back(static_cast<int32_t>(r));
  }
  if (Status status = data_.begin(plan, group_); !status) return status;
  count_tiles(plan);
  plans_.clear();
  const bool all_are_sampled = sampled_rows_.size() == all_rows_.size();
  for (const int64_t window : windows) {
    WindowPlans& plans = plans_.emplace_back();
    planner_.plan(plan, all_rows_, window, plan_options(), plan_);
    plans.all = data_.add(plan, plan_);
    if (all_are_sampled) {
      plans.sampled = plans.all;
    } else {
      planner_.plan(plan, sampled_rows_, window, plan_options(), plan_);
      plans.sampled = data_.add(plan, plan_);
    }
  }
  if (Status status = data_.upload(stream_); !status) return status;
  attention_.take_used_plain_kernel();
  step_ = &plan;
  return {};
}

/// Copies of blocks run beside the step until it reads or writes KV.
Status CudaBackend::wait_for_copies() { return copier_.let_wait(stream_); }

StepRecorder::Facts CudaBackend::record_facts(const RecordKey& key) const {
  const auto number = [](const void* address) { return reinterpret_cast<uint64_t>(address); };
  StepRecorder::Facts facts = {number(key.owner),
                               number(key.storage),
                               static_cast<uint64_t>(key.num_rows),
                               memory_version_,
                               static_cast<uint64_t>(data_.layout_version()),
                               number(attention_.partials()),
                               number(attention_.partial_states()),
                               number(attention_.positioned_q()),
                               static_cast<uint64_t>(group_)};
  for (const WindowPlans& plans : plans_) {
    for (const DevicePlan* plan : {&plans.all, &plans.sampled}) {
      const PlanCounts counts = plan_counts(*plan, group_);
      const bool fills = fills_machine(counts.num_wide, num_kv_heads_, device_.multiProcessorCount);
      facts.push_back(static_cast<uint64_t>(plan->window));
      facts.push_back((counts.num_narrow > 0 ? 1U : 0U) | (counts.num_wide > 0 ? 2U : 0U) |
                      (fills ? 4U : 0U) | (counts.num_merges > 0 ? 8U : 0U));
    }
  }
  return facts;
}

Status CudaBackend::run_recorded(const RecordKey& key, FunctionRef<Status()> work) {
  if (Status status = check_step(); !status) return status;
  if (Status status = wait_for_copies(); !status) return status;
  for (const WindowPlans& plans : plans_) {
    for (const DevicePlan* plan : {&plans.all, &plans.sampled}) {
      const Status status = attention_.reserve(plan->num_partials, num_heads_, head_dim_);
      if (!status) return status;
    }
  }
  const auto run = [&](bool recording) {
    recording_ = recording;
    Status status = work();
    recording_ = false;
    return status;
  };
  const auto was_recordable = [&] { return !attention_.take_used_plain_kernel(); };
  return recorder_.run(record_facts(key), run, was_recordable, stream_);
}

Status CudaBackend::end_step() {
  step_ = nullptr;
  return {};
}

Status CudaBackend::copy_blocks(KvStorage& storage, std::span<const BlockCopy> copies,
                                std::span<const RopeTable* const> rope) {
  if (Status status = check_copies(copies, rope, storage.shape()); !status) return status;
  if (copies.empty()) return {};
  return copier_.run(static_cast<CudaKvStorage&>(storage), copies, rope, stream_);
}

/// The table stays in host memory; the step's rows of it are staged.
Status CudaBackend::embed(const TensorView& table, const TensorView& out) {
  if (Status status = check_step(); !status) return status;
  if (Status status = check_tensor("out", out, num_rows(), table.cols, DType::kFloat32); !status) {
    return status;
  }
  if (Status status = check_token_ids(step_->rows, table); !status) return status;
  if (num_rows() == 0) return {};
  const size_t bytes = table.row_bytes() * step_->rows.size();
  if (Status status = staging_free_.wait(); !status) return status;
  if (Status status = staging_.reserve(bytes); !status) return status;
  if (Status status = staged_.reserve(bytes, "embedding rows"); !status) return status;
  for (size_t r = 0; r < step_->rows.size(); ++r) {
    std::memcpy(staging_.data() + r * table.row_bytes(), table.row(step_->rows[r].token_id),
                table.row_bytes());
  }
  if (Status status = cuda_status(
          cudaMemcpyAsync(staged_.data(), staging_.data(), bytes, cudaMemcpyHostToDevice, stream_),
          "copying embedding rows");
      !status) {
    return status;
  }
  if (Status status = staging_free_.record(stream_); !status) return status;
  return launch_widen({staged_.data(), table.dtype, num_rows(), table.cols, table.cols}, out,
                      stream_);
}

Expected<const float*> CudaBackend::mirrored(const float* values, int64_t count) {
  MirroredVector& mirror = mirrors_[values];
  if (std::equal(mirror.host.begin(), mirror.host.end(), values, values + count)) {
    return mirror.device.as<const float>();
  }
  mirror.host.assign(values, values + count);
  const size_t bytes = static_cast<size_t>(count) * sizeof(float);
  if (Status status = mirror.device.reserve(bytes, "a norm's weight"); !status) return status;
  if (Status status =
          cuda_status(cudaMemcpy(mirror.device.data(), values, bytes, cudaMemcpyHostToDevice),
                      "a norm's weight");
      !status) {
    return status;
  }
  return mirror.device.as<const float>();
}

Status CudaBackend::rms_norm(const TensorView& x, const float* weight, float epsilon,
                             const TensorView& out) {
  if (Status status = check_tensor("x", x, x.rows, x.cols, DType::kFloat32); !status) return status;
  if (Status status = check_tensor("out", out, x.rows, x.cols, dtype_); !status) return status;
  const Expected<const float*> mirror = mirrored(weight, x.cols);
  if (!mirror) return mirror.status();
  return launch_rms_norm(x, *mirror, epsilon, out, stream_);
}

Status CudaBackend::linear(const LinearWeight& weight, const TensorView& x, const TensorView& out,
                           bool accumulate) {
  if (Status status = check_tensor("x", x, x.rows, weight.in_features(), dtype_); !status) {
    return status;
  }
  if (Status status = check_tensor("out", out, x.rows, weight.out_features(), DType::kFloat32);
      !status) {
    return status;
  }
  return products_->run(static_cast<const CudaLinearWeight&>(weight), x, out, accumulate, stream_);
}

Status CudaBackend::write_kv(KvStorage& storage, int layer, const AttentionSpec& spec,
                             const TensorView& k, const TensorView& v) {
  if (Status status = check_step(); !status) return status;
  if (Status status = check_spec(spec, storage.shape(), layer); !status) return status;
  const int64_t cols = int64_t{spec.num_kv_heads} * spec.head_dim;
  if (Status status = check_tensor("k", k, num_rows(), cols, DType::kFloat32); !status) {
    return status;
  }
  if (Status status = check_tensor("v", v, num_rows(), cols, DType::kFloat32); !status) {
    return status;
  }
  if (Status status = check_write_slots(step_->rows, storage.shape()); !status) return status;
  if (Status status = wait_for_copies(); !status) return status;
  const Expected<StepData::Rotations> rotations = data_.rotations(*spec.rope, recording_, stream_);
  if (!rotations) return rotations.status();
  const KvWrite write{static_cast<CudaKvStorage&>(storage).layer(layer),
                      storage.shape().dtype,
                      spec.num_kv_heads,
                      spec.head_dim,
                      spec.rope->num_pairs(),
                      data_.write_slots(),
                      rotations->writes};
  return launch_write_kv(write, k, v, stream_);
}

Status CudaBackend::attention(const KvStorage& storage, int layer, const AttentionSpec& spec,
                              RowSet rows, const TensorView& q, const TensorView& out) {
  if (Status status = check_step(); !status) return status;
  if (Status status = check_spec(spec, storage.shape(), layer); !status) return status;
  if (storage.shape().dtype != dtype_) {
    return invalid_argument("the KV pool and the backend have different dtypes");
  }
  const int64_t num = rows == RowSet::kAll ? num_rows() : num_sampled();
  const int64_t cols = int64_t{spec.num_heads} * spec.head_dim;
  if (Status status = check_tensor("q", q, num, cols, DType::kFloat32); !status) return status;
  if (Status status = check_tensor("out", out, num, cols, dtype_); !status) return status;
  for (const WindowPlans& plans : plans_) {
    if (plans.all.window != spec.window) continue;
    num_heads_ = spec.num_heads;
    group_ = spec.num_heads / spec.num_kv_heads;
    head_dim_ = spec.head_dim;
    if (num == 0) return {};
    if (Status status = wait_for_copies(); !status) return status;
    const Expected<StepData::Rotations> rotations =
        data_.rotations(*spec.rope, recording_, stream_);
    if (!rotations) return rotations.status();
    const bool all = rows == RowSet::kAll;
    return attention_.run(
        {static_cast<const CudaKvStorage&>(storage), layer, spec, all ? plans.all : plans.sampled,
         data_, *rotations, q, out, all ? nullptr : data_.sampled_rows(), recording_},
        stream_);
  }
  return invalid_argument("window " + std::to_string(spec.window) +
                          " was not announced to begin_step");
}

Status CudaBackend::gated_silu(const TensorView& gate_up, const TensorView& out) {
  if (Status status = check_tensor("gate_up", gate_up, out.rows, 2 * out.cols, DType::kFloat32);
      !status) {
    return status;
  }
  if (Status status = check_tensor("out", out, out.rows, out.cols, dtype_); !status) return status;
  return launch_gated_silu(gate_up, out, stream_);
}

Status CudaBackend::gather_sampled(const TensorView& x, const TensorView& out) {
  if (Status status = check_step(); !status) return status;
  if (Status status = check_tensor("x", x, num_rows(), x.cols, DType::kFloat32); !status) {
    return status;
  }
  if (Status status = check_tensor("out", out, num_sampled(), x.cols, DType::kFloat32); !status) {
    return status;
  }
  return launch_gather(x, data_.sampled_rows(), out, stream_);
}

Status CudaBackend::download(const TensorView& x, std::span<float> out) {
  if (Status status = check_tensor("x", x, x.rows, x.cols, DType::kFloat32); !status) return status;
  if (static_cast<int64_t>(out.size()) != x.rows * x.cols) {
    return invalid_argument("download: the destination has " + std::to_string(out.size()) +
                            " elements, must have " + std::to_string(x.rows * x.cols));
  }
  if (!out.empty()) {
    const auto row_stride = static_cast<size_t>(x.row_stride) * sizeof(float);
    if (Status status = cuda_status(
            cudaMemcpy2DAsync(out.data(), x.row_bytes(), x.data, row_stride, x.row_bytes(),
                              static_cast<size_t>(x.rows), cudaMemcpyDeviceToHost, stream_),
            "download");
        !status) {
      return status;
    }
  }
  return cuda_status(cudaStreamSynchronize(stream_), "download");
}

Status CudaBackend::argmax(const TensorView& x, std::span<int32_t> out) {
  const auto num = static_cast<int64_t>(out.size());
  if (Status status = check_tensor("x", x, num, x.cols, DType::kFloat32); !status) return status;
  if (num == 0) return {};
  if (Status status = tokens_.reserve(out.size_bytes(), "chosen tokens"); !status) return status;
  if (Status status = host_tokens_.reserve(out.size_bytes()); !status) return status;
  if (Status status = launch_argmax(x, tokens_.as<int32_t>(), stream_); !status) return status;
  if (Status status =
          cuda_status(cudaMemcpyAsync(host_tokens_.data(), tokens_.data(), out.size_bytes(),
                                      cudaMemcpyDeviceToHost, stream_),
                      "copying chosen tokens");
      !status) {
    return status;
  }
  if (Status status = cuda_status(cudaStreamSynchronize(stream_), "a step"); !status) {
    return status;
  }
  std::memcpy(out.data(), host_tokens_.data(), out.size_bytes());
  return {};
}

}  // namespace

Expected<std::unique_ptr<Backend>> open_cuda_backend(const BackendOptions& options,
                                                     const CudaOptions& cuda_options) {
  constexpr int kMinMajor = 8;
  if (options.dtype == DType::kFloat16) {
    return invalid_argument("the CUDA backend computes in bfloat16 or float32, not in float16");
  }
  if (options.int8_weights) {
    return failed_precondition(
        "int8 weights are not served on a GPU: leave out --weights int8, or use the device 'cpu'");
  }
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
    return failed_precondition("no NVIDIA GPU was found: use the device 'cpu'");
  }
  cudaDeviceProp device{};
  if (Status status = cuda_status(cudaSetDevice(0), "choosing the GPU"); !status) return status;
  if (Status status = cuda_status(cudaGetDeviceProperties(&device, 0), "reading the GPU's kind");
      !status) {
    return status;
  }
  if (device.major < kMinMajor) {
    return failed_precondition(std::string(device.name) + " has compute capability " +
                               std::to_string(device.major) + "." + std::to_string(device.minor) +
                               "; 8.0 or later is needed: use the device 'cpu'");
  }
  auto backend = std::make_unique<CudaBackend>(device, options.dtype, cuda_options);
  if (Status status = backend->open(); !status) return status;
  return std::unique_ptr<Backend>(std::move(backend));
}

}  // namespace cuda

Expected<std::unique_ptr<Backend>> create_cuda_backend(const BackendOptions& options) {
  return cuda::open_cuda_backend(options, {});
}

}  // namespace anyslot
