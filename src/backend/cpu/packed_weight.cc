#include "backend/cpu/packed_weight.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "backend/int8_row.h"
#include "backend/op_checks.h"

namespace anyslot::cpu {

namespace {

/// Large enough to hide what a call of oneDNN costs, small enough that a slice stays in the
/// second-level cache.
constexpr int64_t kPanelsOfSlice = 4;

/// A row of stacked parts.
struct PartRow {
  const TensorView* part;
  int64_t row;
};

PartRow find_row(std::span<const TensorView> parts, int64_t row) {
  size_t p = 0;
  while (row >= parts[p].rows) row -= parts[p++].rows;
  return {&parts[p], row};
}

/// Fills one panel at a time, from rows that were converted to the stored type T.
template <typename T>
class PanelWriter {
 public:
  PanelWriter(std::span<const TensorView> parts, int group, PackedWeight& weight)
      : parts_(parts),
        group_(group),
        weight_(weight),
        in_(weight.in_features()),
        wide_(static_cast<size_t>(in_)),
        rows_(static_cast<size_t>(kPanelColumns * in_)) {}

  void write(int64_t panel) {
    const int64_t begin = panel * kPanelColumns;
    const int64_t count = std::min<int64_t>(kPanelColumns, weight_.out_features() - begin);
    for (int64_t o = 0; o < count; ++o) convert(begin + o, rows_.data() + o * in_);
    scatter(count, reinterpret_cast<T*>(weight_.panel(panel)));
  }

 private:
  void convert(int64_t out_feature, T* to) {
    const PartRow from = find_row(parts_, out_feature);
    if constexpr (std::is_same_v<T, bf16_t>) {
      if (from.part->dtype == DType::kBFloat16) {
        std::memcpy(to, from.part->row(from.row), static_cast<size_t>(in_) * sizeof(bf16_t));
        return;
      }
    }
    const std::byte* row = from.part->row(from.row);
    for (int64_t i = 0; i < in_; ++i) wide_[i] = load_element(row, from.part->dtype, i);
    if constexpr (std::is_same_v<T, int8_t>) {
      const std::span<int8_t> numbers(to, static_cast<size_t>(in_));
      weight_.scales()[out_feature] = quantize_row(wide_, numbers);
      weight_.sums()[out_feature] = std::accumulate(numbers.begin(), numbers.end(), int32_t{0});
    } else if constexpr (std::is_same_v<T, bf16_t>) {
      std::ranges::transform(wide_, to, float_to_bf16);
    } else {
      std::ranges::copy(wide_, to);
    }
  }

  /// In squares that stay in the first-level cache. What is padding stays 0.
  void scatter(int64_t count, T* panel) const {
    constexpr int64_t kSquare = 64;
    for (int64_t square = 0; square < in_; square += kSquare) {
      const int64_t end = std::min(square + kSquare, in_);
      for (int64_t o = 0; o < count; ++o) {
        const T* from = rows_.data() + o * in_;
        for (int64_t i = square; i < end; ++i) {
          panel[(i / group_ * kPanelColumns + o) * group_ + i % group_] = from[i];
        }
      }
    }
  }

  std::span<const TensorView> parts_;
  int64_t group_;
  PackedWeight& weight_;
  int64_t in_;
  std::vector<float> wide_;
  std::vector<T> rows_;  // [kPanelColumns, in_features]
};

template <typename T>
void write_panels(std::span<const TensorView> parts, int group, ThreadPool& threads,
                  PackedWeight& weight) {
  const std::span<const PackedWeight::Slice> slices = weight.slices();
  threads.parallel_for(static_cast<int64_t>(slices.size()), [&](int64_t s, int) {
    PanelWriter<T> writer(parts, group, weight);
    const int64_t first = slices[s].begin / kPanelColumns;
    for (int64_t p = 0; p < slices[s].num_panels(); ++p) writer.write(first + p);
  });
}

std::vector<PackedWeight::Slice> cut_slices(int64_t out_features, int num_threads) {
  const int64_t panels = (out_features + kPanelColumns - 1) / kPanelColumns;
  const int64_t wish = int64_t{num_threads} * kPanelsOfSlice;
  const int64_t rounds = std::max<int64_t>(1, (panels + wish / 2) / wish);
  const int64_t num_slices = std::min(panels, rounds * num_threads);
  std::vector<PackedWeight::Slice> slices;
  for (int64_t s = 0; s < num_slices; ++s) {
    const int64_t begin = panels * s / num_slices * kPanelColumns;
    const int64_t end = std::min(panels * (s + 1) / num_slices * kPanelColumns, out_features);
    slices.push_back({begin, end - begin});
  }
  return slices;
}

}  // namespace

Expected<std::unique_ptr<PackedWeight>> PackedWeight::allocate(int64_t out_features,
                                                               int64_t in_features,
                                                               const PanelKernels& kernels,
                                                               int num_threads) {
  std::unique_ptr<PackedWeight> weight(new PackedWeight(out_features, in_features));
  const int64_t padding = in_padding(kernels.product);
  weight->padded_in_ = (in_features + padding - 1) / padding * padding;
  weight->panel_bytes_ =
      weight->padded_in_ * kPanelColumns * static_cast<int64_t>(stored_size(kernels.stored));
  weight->slices_ = cut_slices(out_features, num_threads);
  const auto padded_out = static_cast<size_t>(weight->num_panels() * kPanelColumns);
  if (kernels.stored == StoredType::kInt8) {
    weight->scales_.resize(padded_out);
    weight->sums_.resize(padded_out);
  }
  Expected<HostMemory> memory = HostMemory::allocate(
      static_cast<size_t>(weight->num_panels() * weight->panel_bytes_), "packed weights");
  if (!memory) return memory.status();
  weight->memory_ = std::move(*memory);
  return weight;
}

Expected<std::unique_ptr<PackedWeight>> pack_weight(std::span<const TensorView> parts,
                                                    const PanelKernels& kernels,
                                                    ThreadPool& threads) {
  const Expected<StackedShape> shape = stacked_shape(parts);
  if (!shape) return shape.status();
  Expected<std::unique_ptr<PackedWeight>> weight = PackedWeight::allocate(
      shape->out_features, shape->in_features, kernels, threads.num_threads());
  if (!weight) return weight.status();
  switch (kernels.stored) {
    case StoredType::kFloat32:
      write_panels<float>(parts, kernels.group, threads, **weight);
      break;
    case StoredType::kBFloat16:
      write_panels<bf16_t>(parts, kernels.group, threads, **weight);
      break;
    case StoredType::kInt8:
      write_panels<int8_t>(parts, kernels.group, threads, **weight);
      break;
  }
  return weight;
}

}  // namespace anyslot::cpu
