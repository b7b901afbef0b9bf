#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "anyslot/status.h"
#include "backend/cpu/host_memory.h"
#include "backend/cpu/onednn.h"
#include "backend/ops.h"
#include "base/tensor_view.h"
#include "base/thread_pool.h"

namespace anyslot::cpu {

/// A weight matrix cut into slices of out_features, each packed once as oneDNN likes it.
class PackedWeight : public LinearWeight {
 public:
  struct Slice {
    int64_t begin = 0;  // of out_features
    int64_t count = 0;
    dnnl::memory packed;
  };

  PackedWeight(int64_t out_features, int64_t in_features, HostMemory memory,
               std::vector<Slice> slices);

  std::span<const Slice> slices() const { return slices_; }

 private:
  HostMemory memory_;
  std::vector<Slice> slices_;
};

/// Types of a product: weights are rounded to `storage` and multiplied as `product`, the same or
/// float32.
struct ProductTypes {
  DType storage = DType::kFloat32;
  DType product = DType::kFloat32;

  dnnl::memory::data_type onednn() const {
    return product == DType::kFloat32 ? dnnl::memory::data_type::f32
                                      : dnnl::memory::data_type::bf16;
  }
};

/// Columns of the widest slice that pack_weight makes.
inline constexpr int64_t kMaxSliceColumns = 384;

/// Packs parts stacked along out_features, each [out_i, in_features] of any DType. Needs little
/// memory besides the result. Throws dnnl::error.
Expected<std::unique_ptr<PackedWeight>> pack_weight(std::span<const TensorView> parts,
                                                    const ProductTypes& types,
                                                    const dnnl::engine& engine,
                                                    ThreadPool& threads);

}  // namespace anyslot::cpu
