#include "backend/cuda/cuda_backend.h"

#include <algorithm>
#include <string>
#include <utility>

#include "backend/cuda/cuda_backend_impl.h"
#include "backend/cuda/cuda_check.h"
#include "backend/cuda/cuda_kv_storage.h"

namespace anyslot {

namespace cuda {
namespace {

/// Rows x heads of the largest attention tile.
constexpr int kTileRows = 128;

/// Whether the kernels of sm_90a are to be used: where they are there and run on the device, unless
/// `isa`, the highest instruction set to use, says otherwise.
Expected<bool> choose_wgmma(const std::string& isa, const cudaDeviceProp& device) {
  const bool available = ANYSLOT_CUDA_HAS_SM90A != 0 && device.major == 9 && device.minor == 0;
  if (isa.empty()) return available;
  if (isa == "sm_80") return false;
  if (isa != "sm_90a") {
    return invalid_argument("the instruction set \"" + isa +
                            "\" is none of a GPU's: sm_80 or sm_90a");
  }
  if (available) return true;
  return failed_precondition("kernels of sm_90a are not in this build or do not run on the " +
                             std::string(device.name) + "; use sm_80");
}

}  // namespace

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

Expected<std::optional<MemoryInfo>> CudaBackend::device_memory() const {
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  if (Status status = cuda_status(cudaMemGetInfo(&free_bytes, &total_bytes), "reading free memory");
      !status) {
    return status;
  }
  return std::optional(
      MemoryInfo{static_cast<int64_t>(free_bytes), static_cast<int64_t>(total_bytes)});
}

std::string CudaBackend::description() const {
  return "cuda: " + std::string(device_.name) + ", " + std::to_string(device_.multiProcessorCount) +
         " multiprocessors, " + (wgmma_ ? "sm_90a" : "sm_80") + " kernels, cuBLASLt (" +
         std::string(dtype_name(dtype_)) + " products)";
}

Status CudaBackend::check_needs(const ModelNeeds& needs) const { return check_cuda_needs(needs); }

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
  Expected<std::unique_ptr<CudaKvStorage>> storage = CudaKvStorage::create(shape, wgmma_);
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
  // What the kernel takes at a time.
  if (one_each) options.cut_tokens = wgmma_ ? kHopperStageTokens : kWideStageTokens;
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
  step_.begin(plan);
  Status status = plan_step(plan, windows);
  if (!status) step_.end();
  return status;
}

Status CudaBackend::plan_step(const StepPlan& plan, std::span<const int64_t> windows) {
  data_.begin(plan, group_);
  count_tiles(plan);
  plans_.clear();
  for (const int64_t window : windows) {
    WindowPlans& plans = plans_.emplace_back();
    planner_.plan(plan, step_.of(RowSet::kAll), window, plan_options(), plan_);
    plans.all = data_.add(plan, plan_);
    if (step_.all_are_sampled()) {
      plans.sampled = plans.all;
    } else {
      planner_.plan(plan, step_.of(RowSet::kSampled), window, plan_options(), plan_);
      plans.sampled = data_.add(plan, plan_);
    }
  }
  if (Status status = data_.upload(stream_); !status) return status;
  attention_.take_used_plain_kernel();
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
                               static_cast<uint64_t>(group_),
                               data_.has_raw_keys() ? 1U : 0U};
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
  if (Status status = step_.check_begun(); !status) return status;
  if (Status status = wait_for_copies(); !status) return status;
  for (const WindowPlans& plans : plans_) {
    for (const DevicePlan* plan : {&plans.all, &plans.sampled}) {
      Status status = attention_.reserve(plan->num_partials, num_heads_, head_dim_);
      if (!status) return status;
    }
  }
  const auto run = [&](bool recording) {
    struct Reset {
      bool& flag;
      ~Reset() { flag = false; }
    } const reset{recording_};
    recording_ = recording;
    return work();
  };
  const auto was_recordable = [&] { return !attention_.take_used_plain_kernel(); };
  return recorder_.run(record_facts(key), run, was_recordable, stream_);
}

Status CudaBackend::end_step() {
  step_.end();
  return {};
}

Expected<std::unique_ptr<Backend>> open_cuda_backend(const BackendOptions& options,
                                                     const CudaOptions& cuda_options) {
  constexpr int kMinMajor = 8;
  if (options.int8_weights) {
    return failed_precondition(
        "int8 weights are not served on a GPU: leave out --weights int8, or use the device 'cpu'");
  }
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess || count == 0) {
    cudaGetLastError();
    std::string reason = error == cudaSuccess ? "there is none" : cudaGetErrorString(error);
    if (error == cudaErrorInsufficientDriver) {  // so it calls a machine without a driver, too
      reason = "there is no driver of one, or it is older than this build's CUDA";
    }
    return failed_precondition("no NVIDIA GPU can be used: " + reason + "; use the device 'cpu'");
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
  const Expected<bool> wgmma = choose_wgmma(options.max_isa, device);
  if (!wgmma) return wgmma.status();
  auto backend = std::make_unique<CudaBackend>(device, options.dtype, *wgmma, cuda_options);
  if (Status status = backend->open(); !status) return status;
  return std::unique_ptr<Backend>(std::move(backend));
}

}  // namespace cuda

Expected<std::unique_ptr<Backend>> create_cuda_backend(const BackendOptions& options) {
  return cuda::open_cuda_backend(options, {});
}

}  // namespace anyslot
