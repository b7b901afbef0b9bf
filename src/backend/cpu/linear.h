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

/// Products with packed weights. Each task multiplies a chunk of rows with a slice of the weight on
/// one thread into the worker's own memory, which is then stored in the output or added to it: so
/// the output may have any stride, and primitives for a few row counts serve all of them.
class LinearRunner {
 public:
  /// `kernels` and `threads` must outlive it. Fails with kInternal when oneDNN does not work.
  static Expected<std::unique_ptr<LinearRunner>> create(const KernelTable& kernels,
                                                        ThreadPool& threads, ProductTypes types);
  ~LinearRunner();

  const ProductTypes& types() const { return types_; }

  /// See Backend::load_linear.
  Expected<std::unique_ptr<LinearWeight>> load(std::span<const TensorView> parts);

  /// out = x weight^T, or out += x weight^T. x: types.storage [n, in_features]; out: float32
  /// [n, out_features].
  Status run(const PackedWeight& weight, const TensorView& x, const TensorView& out,
             bool accumulate);

 private:
  struct Matmul;
  struct Worker;

  LinearRunner(const KernelTable& kernels, ThreadPool& threads, ProductTypes types);
  Status stage(const TensorView& x, int64_t padded_rows);
  void find_matmuls(const PackedWeight& weight, int64_t chunk_rows);
  Status reserve_scratchpads();

  const KernelTable& kernels_;
  ThreadPool& threads_;
  ProductTypes types_;
  dnnl::engine engine_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::map<MatmulShape, std::unique_ptr<Matmul>> matmuls_;
  std::vector<const Matmul*> slice_matmuls_;  // of the call at hand, one per slice
  HostMemory staged_;  // rows of x that need widening, padding or another stride
};

}  // namespace anyslot::cpu
