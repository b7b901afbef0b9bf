#pragma once

#include <cuda_runtime_api.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/attention_plan.h"
#include "backend/cuda/attention_runner.h"
#include "backend/cuda/block_copier.h"
#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/linear.h"
#include "backend/cuda/step_data.h"
#include "backend/cuda/step_recorder.h"
#include "backend/op_checks.h"

namespace anyslot::cuda {

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
  CudaBackend(const cudaDeviceProp& device, DType dtype, bool wgmma, const CudaOptions& options)
      : device_(device),
        dtype_(dtype),
        stream_(options.stream),
        wgmma_(wgmma),
        attention_(device.multiProcessorCount, options.tensor_cores, wgmma_, device.major >= 9) {}
  ~CudaBackend() override { cudaStreamSynchronize(stream_); }

  Status open();

  std::string_view name() const override { return "cuda"; }
  std::string description() const override;
  DType activation_dtype() const override { return dtype_; }
  Expected<std::optional<MemoryInfo>> device_memory() const override;

  Status check_needs(const ModelNeeds& needs) const override;

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
  Status argmax(const TensorView& x, std::span<int32_t> out) override;
  Status run_recorded(const RecordKey& key, FunctionRef<Status()> work) override;

 private:
  Status plan_step(const StepPlan& plan, std::span<const int64_t> windows);
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
  bool wgmma_;
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

  StepRows step_;
  AttentionPlanner planner_;
  AttentionPlan plan_;
  StepData data_;
  std::vector<WindowPlans> plans_;

  BlockCopier copier_;
  std::map<const float*, MirroredVector> mirrors_;
  StagedCopy embeddings_;
  DeviceMemory tokens_;
  PinnedMemory host_tokens_;
};

}  // namespace anyslot::cuda
