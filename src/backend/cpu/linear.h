#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "anyslot/status.h"
#include "backend/cpu/host_memory.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/onednn.h"
#include "backend/cpu/packed_weight.h"
#include "base/tensor_view.h"
#include "base/thread_pool.h"

namespace anyslot::cpu {

/// Products with packed weights. A few rows meet the weights as they lie in memory, which bounds
/// the time. More rows go to oneDNN: each task multiplies a chunk of rows with a slice of the
/// weight on one thread into the worker's own memory, which is then stored in the output or added
/// to it: so the output may have any stride, and primitives for a few row counts serve all of them.
class LinearRunner {
 public:
  /// `kernels` and `threads` must outlive it. Fails with kInternal when oneDNN does not work, with
  /// kFailedPrecondition when the instruction set has no kernels for the types.
  static Expected<std::unique_ptr<LinearRunner>> create(const KernelTable& kernels,
                                                        ThreadPool& threads, ProductTypes types);
  ~LinearRunner();

  const ProductTypes& types() const { return types_; }

  /// See Backend::load_linear.
  Expected<std::unique_ptr<LinearWeight>> load(std::span<const TensorView> parts);

  /// out = x weight^T, or out += x weight^T. x: types.activation [n, in_features]; out: float32
  /// [n, out_features].
  Status run(const PackedWeight& weight, const TensorView& x, const TensorView& out,
             bool accumulate);

 private:
  struct Matmul;
  struct Worker;
  struct Chunks;
  struct Job;

  LinearRunner(const KernelTable& kernels, const PanelKernels& panels, ThreadPool& threads,
               ProductTypes types);
  Status run_few_rows(const PackedWeight& weight, const TensorView& x, const TensorView& out,
                      bool accumulate);
  Status run_many_rows(const PackedWeight& weight, const TensorView& x, const TensorView& out,
                       bool accumulate);
  Status stage(const TensorView& x, int64_t padded_rows);
  void find_matmuls(const PackedWeight& weight, int64_t chunk_rows);
  Status reserve(const PackedWeight& weight);
  const std::byte* weights_of_slice(const PackedWeight& weight, int64_t slice, Worker& worker);
  bool multiply(const Job& job, int64_t slice, int64_t chunk, const std::byte* weights,
                int worker_index);

  const KernelTable& kernels_;
  const PanelKernels& panels_;
  ThreadPool& threads_;
  ProductTypes types_;
  dnnl::engine engine_;
  WeightsLayout layout_ = WeightsLayout::kPanels;
  bool unpacks_ = false;  // the weights do not lie as oneDNN takes them
  std::vector<std::unique_ptr<Worker>> workers_;
  std::map<MatmulShape, std::unique_ptr<Matmul>> matmuls_;
  std::vector<const Matmul*> slice_matmuls_;  // of the call at hand, one per slice
  HostMemory staged_;    // rows of x that need widening, padding or another stride
  HostMemory operands_;  // a few rows of x, ready for the kernels
};

}  // namespace anyslot::cpu
