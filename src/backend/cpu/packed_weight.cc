#include "backend/cpu/packed_weight.h"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>

namespace anyslot::cpu {

namespace {

/// oneDNN's blocks of out_features. Slices are whole blocks, so that no lane is idle inside.
constexpr int64_t kColumnBlock = 64;
/// Large enough to hide what a call costs, small enough that a slice stays in the second-level
/// cache.
constexpr int64_t kBlocksOfSlice = 4;
/// Rows for which the layout is chosen. It serves one row as well.
constexpr int64_t kTypicalRows = 256;

float element(const TensorView& x, int64_t row, int64_t col) {
  switch (x.dtype) {
    case DType::kFloat32:
      return x.row_as<float>(row)[col];
    case DType::kBFloat16:
      return bf16_to_float(x.row_as<bf16_t>(row)[col]);
    case DType::kFloat16:
      return fp16_to_float(x.row_as<uint16_t>(row)[col]);
  }
  return 0;
}

void convert_row(const TensorView& x, int64_t row, const ProductTypes& types, std::byte* out) {
  if (x.dtype == types.product && types.storage == types.product) {
    std::memcpy(out, x.row(row), x.row_bytes());
    return;
  }
  for (int64_t c = 0; c < x.cols; ++c) {
    const float value = element(x, row, c);
    if (types.product == DType::kBFloat16) {
      reinterpret_cast<bf16_t*>(out)[c] = float_to_bf16(value);
    } else {
      reinterpret_cast<float*>(out)[c] =
          types.storage == DType::kFloat32 ? value : bf16_to_float(float_to_bf16(value));
    }
  }
}

/// Rows [begin, begin + count) of the stacked parts, one after the other.
void gather_rows(std::span<const TensorView> parts, int64_t begin, int64_t count,
                 const ProductTypes& types, std::byte* out) {
  const size_t row_bytes = static_cast<size_t>(parts[0].cols) * dtype_size(types.product);
  for (const TensorView& part : parts) {
    for (int64_t r = begin; r < part.rows && count > 0; ++r, ++begin, --count, out += row_bytes) {
      convert_row(part, r, types, out);
    }
    begin -= part.rows;
  }
}

struct Columns {
  int64_t begin;
  int64_t count;
};

/// About kBlocksOfSlice blocks each, in equal numbers for every thread.
std::vector<Columns> cut_columns(int64_t out_features, int num_threads) {
  const int64_t blocks = (out_features + kColumnBlock - 1) / kColumnBlock;
  const int64_t wish = int64_t{num_threads} * kBlocksOfSlice;
  const int64_t rounds = std::max<int64_t>(1, (blocks + wish / 2) / wish);
  const int64_t num_slices = std::min(blocks, rounds * num_threads);
  std::vector<Columns> columns;
  for (int64_t s = 0; s < num_slices; ++s) {
    const int64_t begin = blocks * s / num_slices * kColumnBlock;
    const int64_t end = std::min(blocks * (s + 1) / num_slices * kColumnBlock, out_features);
    columns.push_back({begin, end - begin});
  }
  return columns;
}

dnnl::memory::desc row_major(const MatmulShape& shape) {
  return {{shape.in_features, shape.out_features}, shape.type, dnnl::memory::format_tag::ba};
}

Status check_parts(std::span<const TensorView> parts) {
  if (parts.empty()) return invalid_argument("a linear weight needs at least one part");
  for (const TensorView& part : parts) {
    if (part.cols != parts[0].cols) return invalid_argument("parts differ in in_features");
    if (part.rows <= 0 || part.cols <= 0) return invalid_argument("a part of a weight is empty");
  }
  return {};
}

}  // namespace

PackedWeight::PackedWeight(int64_t out_features, int64_t in_features, HostMemory memory,
                           std::vector<Slice> slices)
    : LinearWeight(out_features, in_features),
      memory_(std::move(memory)),
      slices_(std::move(slices)) {}

Expected<std::unique_ptr<PackedWeight>> pack_weight(std::span<const TensorView> parts,
                                                    const ProductTypes& types,
                                                    const dnnl::engine& engine,
                                                    ThreadPool& threads) {
  if (Status status = check_parts(parts); !status) return status;
  const int64_t in_features = parts[0].cols;
  int64_t out_features = 0;
  for (const TensorView& part : parts) out_features += part.rows;

  const std::vector<Columns> columns = cut_columns(out_features, threads.num_threads());
  std::vector<dnnl::memory::desc> layouts;
  std::vector<size_t> offsets;
  size_t bytes = 0;
  for (size_t s = 0; s < columns.size(); ++s) {
    const MatmulShape shape{kTypicalRows, in_features, columns[s].count, types.onednn()};
    const bool as_before = s > 0 && columns[s].count == columns[s - 1].count;
    layouts.push_back(as_before ? layouts.back() : preferred_weights(engine, shape));
    offsets.push_back(bytes);
    bytes += (layouts.back().get_size() + 63) / 64 * 64;
  }
  Expected<HostMemory> memory = HostMemory::allocate(bytes, "packed weights");
  if (!memory) return memory.status();

  std::vector<PackedWeight::Slice> slices;
  for (size_t s = 0; s < columns.size(); ++s) {
    slices.push_back({columns[s].begin, columns[s].count,
                      dnnl::memory(layouts[s], engine, memory->data() + offsets[s])});
  }
  std::atomic<bool> failed = false;
  threads.parallel_for(static_cast<int64_t>(slices.size()), [&](int64_t s, int) {
    try {
      omp_set_num_threads(1);
      const PackedWeight::Slice& slice = slices[s];
      const MatmulShape shape{kTypicalRows, in_features, slice.count, types.onednn()};
      std::vector<std::byte> rows(static_cast<size_t>(slice.count * in_features) *
                                  dtype_size(types.product));
      gather_rows(parts, slice.begin, slice.count, types, rows.data());
      dnnl::memory source(row_major(shape), engine, rows.data());
      dnnl::memory target = slice.packed;
      dnnl::stream stream(engine);
      dnnl::reorder(source, target).execute(stream, source, target);
      stream.wait();
    } catch (const std::exception&) {
      failed = true;
    }
  });
  if (failed) {
    return internal_error("packing a weight of " + std::to_string(out_features) + " x " +
                          std::to_string(in_features) + " with oneDNN failed");
  }
  return std::make_unique<PackedWeight>(out_features, in_features, std::move(*memory),
                                        std::move(slices));
}

}  // namespace anyslot::cpu
