#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "anyslot/status.h"
#include "backend/cpu/host_memory.h"
#include "backend/cpu/kernels.h"
#include "backend/ops.h"
#include "base/tensor_view.h"
#include "base/thread_pool.h"

namespace anyslot::cpu {

/// Types of a product: rows of `activation` and weights, rounded to `stored`, are multiplied as
/// `product`, bfloat16 or float32.
struct ProductTypes {
  DType activation = DType::kFloat32;
  StoredType stored = StoredType::kFloat32;
  DType product = DType::kFloat32;
};

constexpr size_t stored_size(StoredType type) {
  return type == StoredType::kFloat32 ? 4 : type == StoredType::kBFloat16 ? 2 : 1;
}

/// A weight matrix as panels (see PanelKernels), cut into slices of whole panels.
class PackedWeight : public LinearWeight {
 public:
  struct Slice {
    int64_t begin = 0;  // of out_features
    int64_t count = 0;  // as many as there are, the last panel's padding not counted

    int64_t num_panels() const { return (count + kPanelColumns - 1) / kPanelColumns; }
  };

  /// Allocates the panels and cuts the slices, about equal numbers for every thread; the numbers
  /// are still to be written.
  static Expected<std::unique_ptr<PackedWeight>> allocate(int64_t out_features, int64_t in_features,
                                                          const PanelKernels& kernels,
                                                          int num_threads);

  std::span<const Slice> slices() const { return slices_; }
  int64_t padded_in() const { return padded_in_; }
  int64_t num_panels() const { return (out_features() + kPanelColumns - 1) / kPanelColumns; }
  int64_t panel_bytes() const { return panel_bytes_; }
  const std::byte* panel(int64_t index) const { return memory_.data() + index * panel_bytes_; }
  std::byte* panel(int64_t index) { return memory_.data() + index * panel_bytes_; }
  /// Of int8 weights, [out_features, padded to whole panels]; else null.
  const float* scales() const { return scales_.empty() ? nullptr : scales_.data(); }
  const int32_t* sums() const { return sums_.empty() ? nullptr : sums_.data(); }
  float* scales() { return scales_.empty() ? nullptr : scales_.data(); }
  int32_t* sums() { return sums_.empty() ? nullptr : sums_.data(); }

 private:
  PackedWeight(int64_t out_features, int64_t in_features)
      : LinearWeight(out_features, in_features) {}

  int64_t padded_in_ = 0;
  int64_t panel_bytes_ = 0;
  HostMemory memory_;
  std::vector<Slice> slices_;
  std::vector<float> scales_;
  std::vector<int32_t> sums_;
};

/// The largest slice that PackedWeight::allocate cuts.
inline constexpr int64_t kMaxSliceColumns = 384;

/// Packs parts stacked along out_features, each [out_i, in_features] of any DType. Needs little
/// memory besides the result.
Expected<std::unique_ptr<PackedWeight>> pack_weight(std::span<const TensorView> parts,
                                                    const PanelKernels& kernels,
                                                    ThreadPool& threads);

}  // namespace anyslot::cpu
