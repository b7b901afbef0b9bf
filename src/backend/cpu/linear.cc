#include "backend/cpu/linear.h"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>
#include <utility>

namespace anyslot::cpu {

namespace {

/// oneDNN runs serially on this thread while it lives; the caller's own setting comes back after.
class SerialOpenMp {
 public:
  SerialOpenMp() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~SerialOpenMp() { omp_set_num_threads(before_); }
  SerialOpenMp(const SerialOpenMp&) = delete;
  SerialOpenMp& operator=(const SerialOpenMp&) = delete;

 private:
  int before_;
};

/// Rows of one task, at most: larger chunks gain nothing.
constexpr int64_t kMaxChunkRows = 256;
/// Up to 64 rows a product is bound by reading the weights, and a few unused rows cost little.
constexpr int64_t kSmallRowCounts[] = {16, 24, 32, 40, 48, 56, 64};

const PanelKernels* find_panels(const KernelTable& kernels, const ProductTypes& types) {
  for (int i = 0; i < kernels.num_panels; ++i) {
    const PanelKernels& panels = kernels.panels[i];
    if (panels.stored == types.stored && panels.product == types.product) return &panels;
  }
  return nullptr;
}

dnnl::memory::data_type onednn_type(DType product) {
  return product == DType::kFloat32 ? dnnl::memory::data_type::f32 : dnnl::memory::data_type::bf16;
}

Status reserve_memory(HostMemory& memory, size_t bytes, const char* purpose) {
  if (memory.size_bytes() >= bytes) return {};
  Expected<HostMemory> larger = HostMemory::allocate(bytes, purpose);
  if (!larger) return larger.status();
  memory = std::move(*larger);
  return {};
}

}  // namespace

/// Equal chunks of rows. The last one may begin earlier, so that it ends with the rows.
struct LinearRunner::Chunks {
  explicit Chunks(int64_t total) : count((total + kMaxChunkRows - 1) / kMaxChunkRows) {
    const int64_t least = (total + count - 1) / count;
    const int64_t step = least <= 128 ? 8 : 16;
    rows = (least + step - 1) / step * step;
    for (const int64_t candidate : kSmallRowCounts) {
      if (candidate < least) continue;
      rows = candidate;
      break;
    }
  }

  int64_t count;
  int64_t rows;  // of a chunk
};

/// A primitive of one shape, and the memory objects through which each worker calls it.
struct LinearRunner::Matmul {
  struct Memories {
    dnnl::memory src;
    dnnl::memory weights;
    dnnl::memory dst;
    dnnl::memory scratchpad;
  };
  dnnl::matmul primitive;
  size_t scratchpad_bytes = 0;
  std::vector<Memories> memories;  // one per worker
};

struct LinearRunner::Worker {
  dnnl::stream stream;
  HostMemory result;  // float32 [kMaxChunkRows, kMaxSliceColumns]
  HostMemory scratchpad;
  HostMemory weights;  // a slice, unpacked for oneDNN
};

/// One call of run_many_rows.
struct LinearRunner::Job {
  const PackedWeight& weight;
  const std::byte* rows;  // dense, of the product's type
  int64_t num_rows;
  const TensorView& out;
  bool accumulate;
  Chunks chunks;
};

LinearRunner::LinearRunner(const KernelTable& kernels, const PanelKernels& panels,
                           ThreadPool& threads, ProductTypes types)
    : kernels_(kernels),
      panels_(panels),
      threads_(threads),
      types_(types),
      engine_(dnnl::engine::kind::cpu, 0) {}

LinearRunner::~LinearRunner() = default;

Expected<std::unique_ptr<LinearRunner>> LinearRunner::create(const KernelTable& kernels,
                                                             ThreadPool& threads,
                                                             ProductTypes types) {
  const PanelKernels* panels = find_panels(kernels, types);
  if (panels == nullptr) {
    return failed_precondition("the " + std::string(kernels.name) +
                               " kernels have no products of these types of weights and rows");
  }
  try {
    std::unique_ptr<LinearRunner> runner(new LinearRunner(kernels, *panels, threads, types));
    const SerialOpenMp serial;
    runner->layout_ = choose_layout(runner->engine_, onednn_type(types.product));
    const bool as_product =
        types.stored ==
        (types.product == DType::kFloat32 ? StoredType::kFloat32 : StoredType::kBFloat16);
    runner->unpacks_ = runner->layout_ == WeightsLayout::kPlain || !as_product;
    for (int w = 0; w < threads.num_threads(); ++w) {
      Expected<HostMemory> result = HostMemory::allocate(
          kMaxChunkRows * kMaxSliceColumns * sizeof(float), "results of products");
      if (!result) return result.status();
      runner->workers_.push_back(std::make_unique<Worker>(
          Worker{dnnl::stream(runner->engine_), std::move(*result), HostMemory(), HostMemory()}));
    }
    return runner;
  } catch (const dnnl::error& error) {
    return internal_error(std::string("oneDNN cannot be used: ") + error.what());
  }
}

Expected<std::unique_ptr<LinearWeight>> LinearRunner::load(std::span<const TensorView> parts) {
  Expected<std::unique_ptr<PackedWeight>> weight = pack_weight(parts, panels_, threads_);
  if (!weight) return weight.status();
  return std::unique_ptr<LinearWeight>(std::move(*weight));
}

Status LinearRunner::run(const PackedWeight& weight, const TensorView& x, const TensorView& out,
                         bool accumulate) {
  if (x.rows == 0) return {};
  return x.rows <= kFewRows ? run_few_rows(weight, x, out, accumulate)
                            : run_many_rows(weight, x, out, accumulate);
}

Status LinearRunner::run_few_rows(const PackedWeight& weight, const TensorView& x,
                                  const TensorView& out, bool accumulate) {
  const int64_t stride = operand_bytes(weight.padded_in());
  if (Status status =
          reserve_memory(operands_, static_cast<size_t>(x.rows * stride), "the rows of a product");
      !status) {
    return status;
  }
  for (int64_t r = 0; r < x.rows; ++r) {
    panels_.prepare_row(x.row(r), x.dtype, x.cols, weight.padded_in(),
                        operands_.data() + r * stride);
  }
  const auto multiply_slice = [&](int64_t s) {
    const PackedWeight::Slice& slice = weight.slices()[s];
    PanelProduct product;
    product.padded_in = weight.padded_in();
    product.operands = operands_.data();
    product.operand_stride = stride;
    product.num_rows = static_cast<int>(x.rows);
    product.out_stride = out.row_stride;
    product.accumulate = accumulate;
    for (int64_t p = 0; p < slice.num_panels(); ++p) {
      const int64_t column = slice.begin + p * kPanelColumns;
      product.panel = weight.panel(column / kPanelColumns);
      if (weight.scales() != nullptr) {
        product.scales = weight.scales() + column;
        product.sums = weight.sums() + column;
      }
      product.out = out.row_as<float>(0) + column;
      product.num_columns =
          static_cast<int>(std::min<int64_t>(kPanelColumns, weight.out_features() - column));
      panels_.multiply(product);
    }
  };
  threads_.parallel_for(static_cast<int64_t>(weight.slices().size()),
                        [&multiply_slice](int64_t s, int) { multiply_slice(s); });
  return {};
}

/// Copies x to rows that lie densely in product type, followed by rows of anything up to
/// padded_rows.
Status LinearRunner::stage(const TensorView& x, int64_t padded_rows) {
  const size_t row_bytes = static_cast<size_t>(x.cols) * dtype_size(types_.product);
  const size_t bytes = static_cast<size_t>(padded_rows) * row_bytes;
  if (Status status = reserve_memory(staged_, bytes, "the rows of a product"); !status) {
    return status;
  }
  constexpr int64_t kRowsOfTask = 16;
  const int64_t num_tasks = (x.rows + kRowsOfTask - 1) / kRowsOfTask;
  threads_.parallel_for(num_tasks, [&](int64_t task, int) {
    const int64_t end = std::min(x.rows, (task + 1) * kRowsOfTask);
    for (int64_t r = task * kRowsOfTask; r < end; ++r) {
      std::byte* out = staged_.data() + static_cast<size_t>(r) * row_bytes;
      if (types_.activation == types_.product) {
        std::memcpy(out, x.row(r), row_bytes);
      } else {
        kernels_.widen(x.row_as<bf16_t>(r), reinterpret_cast<float*>(out), x.cols);
      }
    }
  });
  return {};
}

/// Fills slice_matmuls_, creating what is new. Throws dnnl::error.
void LinearRunner::find_matmuls(const PackedWeight& weight, int64_t chunk_rows) {
  slice_matmuls_.clear();
  for (const PackedWeight::Slice& slice : weight.slices()) {
    const MatmulShape shape{chunk_rows, weight.in_features(), slice.num_panels() * kPanelColumns,
                            onednn_type(types_.product)};
    std::unique_ptr<Matmul>& matmul = matmuls_[shape];
    if (!matmul) {
      const dnnl::memory::desc weights = weights_desc(shape, layout_);
      const auto description = describe_matmul(engine_, shape, weights);
      auto made = std::make_unique<Matmul>();
      made->primitive = dnnl::matmul(description);
      made->scratchpad_bytes = description.scratchpad_desc().get_size();
      for (const auto& worker : workers_) {
        made->memories.push_back({dnnl::memory(shape.src(), engine_, nullptr),
                                  dnnl::memory(weights, engine_, nullptr),
                                  dnnl::memory(shape.dst(), engine_, worker->result.data()),
                                  dnnl::memory(description.scratchpad_desc(), engine_, nullptr)});
      }
      matmul = std::move(made);
    }
    slice_matmuls_.push_back(matmul.get());
  }
}

/// Memory of the workers for slice_matmuls_.
Status LinearRunner::reserve(const PackedWeight& weight) {
  size_t scratchpad = 0;
  for (const Matmul* matmul : slice_matmuls_) {
    scratchpad = std::max(scratchpad, matmul->scratchpad_bytes);
  }
  int64_t columns = 0;
  for (const PackedWeight::Slice& slice : weight.slices()) {
    columns = std::max(columns, slice.num_panels() * kPanelColumns);
  }
  const size_t weights =
      static_cast<size_t>(weight.padded_in() * columns) * dtype_size(types_.product);
  for (const auto& worker : workers_) {
    Status status = reserve_memory(worker->scratchpad, scratchpad, "oneDNN's scratchpad");
    if (status.ok() && unpacks_) {
      status = reserve_memory(worker->weights, weights, "unpacked weights");
    }
    if (!status.ok()) return status;
  }
  return {};
}

/// A slice's weights as oneDNN takes them.
const std::byte* LinearRunner::weights_of_slice(const PackedWeight& weight, int64_t slice,
                                                Worker& worker) {
  const PackedWeight::Slice& columns = weight.slices()[slice];
  const int64_t first = columns.begin / kPanelColumns;
  if (!unpacks_) return weight.panel(first);
  const bool is_plain = layout_ == WeightsLayout::kPlain;
  const int64_t stride = (is_plain ? columns.num_panels() : 1) * kPanelColumns;
  const int64_t step = is_plain ? kPanelColumns : weight.padded_in() * kPanelColumns;
  for (int64_t p = 0; p < columns.num_panels(); ++p) {
    std::byte* to =
        worker.weights.data() + static_cast<size_t>(p * step) * dtype_size(types_.product);
    panels_.unpack(weight.panel(first + p), weight.padded_in(), to, stride);
  }
  return worker.weights.data();
}

/// Whether oneDNN succeeded.
bool LinearRunner::multiply(const Job& job, int64_t slice_index, int64_t chunk,
                            const std::byte* weights, int worker_index) {
  Worker& worker = *workers_[worker_index];
  const Matmul& matmul = *slice_matmuls_[slice_index];
  const Matmul::Memories& memories = matmul.memories[worker_index];
  const size_t row_bytes =
      static_cast<size_t>(job.weight.in_features()) * dtype_size(types_.product);
  const int64_t last_begin = std::max<int64_t>(0, job.num_rows - job.chunks.rows);
  const int64_t begin = std::min(chunk * job.chunks.rows, last_begin);
  const auto set = [](const dnnl::memory& memory, const void* data) {
    return dnnl_memory_set_data_handle(memory.get(), const_cast<void*>(data)) == dnnl_success;
  };
  if (!set(memories.src, job.rows + static_cast<size_t>(begin) * row_bytes) ||
      !set(memories.weights, weights) || !set(memories.scratchpad, worker.scratchpad.data())) {
    return false;
  }
  const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_SRC, memories.src.get()},
                                       {DNNL_ARG_WEIGHTS, memories.weights.get()},
                                       {DNNL_ARG_DST, memories.dst.get()},
                                       {DNNL_ARG_SCRATCHPAD, memories.scratchpad.get()}};
  omp_set_num_threads(1);
  if (dnnl_primitive_execute(matmul.primitive.get(), worker.stream.get(), std::size(arguments),
                             arguments) != dnnl_success) {
    return false;
  }
  const PackedWeight::Slice& slice = job.weight.slices()[slice_index];
  const int64_t stride = slice.num_panels() * kPanelColumns;
  const int64_t first_new = chunk * job.chunks.rows;  // rows before it belong to the chunk before
  const int64_t end = std::min(job.num_rows, first_new + job.chunks.rows);
  const float* scales = job.weight.scales();
  kernels_.store_tile(
      reinterpret_cast<const float*>(worker.result.data()) + (first_new - begin) * stride, stride,
      job.out.row_as<float>(first_new) + slice.begin, job.out.row_stride, end - first_new,
      slice.count, scales == nullptr ? nullptr : scales + slice.begin, job.accumulate);
  return true;
}

Status LinearRunner::run_many_rows(const PackedWeight& weight, const TensorView& x,
                                   const TensorView& out, bool accumulate) {
  const Chunks chunks(x.rows);
  const SerialOpenMp serial;  // a primitive is cut for the threads that its creator has
  try {
    find_matmuls(weight, chunks.rows);
  } catch (const dnnl::error& error) {
    return internal_error("oneDNN has no product of " + std::to_string(chunks.rows) + " x " +
                          std::to_string(weight.in_features()) + " by " +
                          std::to_string(weight.out_features()) + ": " + error.what());
  }
  if (Status status = reserve(weight); !status) return status;

  const std::byte* rows = x.row(0);
  if (types_.activation != types_.product || x.row_stride != x.cols || chunks.rows > x.rows) {
    if (Status status = stage(x, std::max(x.rows, chunks.rows)); !status) return status;
    rows = staged_.data();
  }
  const Job job{weight, rows, x.rows, out, accumulate, chunks};
  // A task unpacks its slice once, for all chunks.
  const int64_t chunks_of_task = unpacks_ ? chunks.count : 1;
  const int64_t tasks_of_slice = chunks.count / chunks_of_task;
  std::atomic<bool> failed = false;
  const auto run_task = [&](int64_t task, int worker) {
    const int64_t slice = task / tasks_of_slice;
    const std::byte* weights = weights_of_slice(weight, slice, *workers_[worker]);
    const int64_t first = task % tasks_of_slice * chunks_of_task;
    for (int64_t chunk = first; chunk < first + chunks_of_task; ++chunk) {
      if (!multiply(job, slice, chunk, weights, worker)) failed = true;
    }
  };
  threads_.parallel_for(static_cast<int64_t>(weight.slices().size()) * tasks_of_slice,
                        [&run_task](int64_t task, int worker) { run_task(task, worker); });
  return failed ? internal_error("a product of oneDNN failed") : Status();
}

}  // namespace anyslot::cpu
