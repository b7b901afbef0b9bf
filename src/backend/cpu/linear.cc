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
constexpr int64_t kSmallRowCounts[] = {1, 4, 8, 16, 24, 32, 40, 48, 56, 64};

/// Equal chunks of rows. The last one may begin earlier, so that it ends with the rows.
struct Chunks {
  int64_t rows = 0;  // of a chunk
  int64_t count = 0;
};

Chunks cut_rows(int64_t rows) {
  const int64_t count = (rows + kMaxChunkRows - 1) / kMaxChunkRows;
  const int64_t least = (rows + count - 1) / count;
  for (const int64_t candidate : kSmallRowCounts) {
    if (candidate >= least) return {candidate, count};
  }
  const int64_t step = least <= 128 ? 8 : 16;
  return {(least + step - 1) / step * step, count};
}

}  // namespace

/// A primitive of one shape, and the memory objects through which each worker calls it.
struct LinearRunner::Matmul {
  struct Memories {
    dnnl::memory src;
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
};

LinearRunner::LinearRunner(const KernelTable& kernels, ThreadPool& threads, ProductTypes types)
    : kernels_(kernels), threads_(threads), types_(types), engine_(dnnl::engine::kind::cpu, 0) {}

LinearRunner::~LinearRunner() = default;

Expected<std::unique_ptr<LinearRunner>> LinearRunner::create(const KernelTable& kernels,
                                                             ThreadPool& threads,
                                                             ProductTypes types) {
  try {
    std::unique_ptr<LinearRunner> runner(new LinearRunner(kernels, threads, types));
    for (int w = 0; w < threads.num_threads(); ++w) {
      Expected<HostMemory> result = HostMemory::allocate(
          kMaxChunkRows * kMaxSliceColumns * sizeof(float), "results of products");
      if (!result) return result.status();
      runner->workers_.push_back(std::make_unique<Worker>(
          Worker{dnnl::stream(runner->engine_), std::move(*result), HostMemory()}));
    }
    return runner;
  } catch (const dnnl::error& error) {
    return internal_error(std::string("oneDNN cannot be used: ") + error.what());
  }
}

Expected<std::unique_ptr<LinearWeight>> LinearRunner::load(std::span<const TensorView> parts) {
  try {
    const SerialOpenMp serial;
    Expected<std::unique_ptr<PackedWeight>> weight = pack_weight(parts, types_, engine_, threads_);
    if (!weight) return weight.status();
    return std::unique_ptr<LinearWeight>(std::move(*weight));
  } catch (const dnnl::error& error) {
    return internal_error(std::string("oneDNN cannot pack a weight: ") + error.what());
  }
}

/// Copies x to rows that lie densely in product type, followed by rows of anything up to
/// padded_rows.
Status LinearRunner::stage(const TensorView& x, int64_t padded_rows) {
  const size_t row_bytes = static_cast<size_t>(x.cols) * dtype_size(types_.product);
  const size_t bytes = static_cast<size_t>(padded_rows) * row_bytes;
  if (staged_.size_bytes() < bytes) {
    Expected<HostMemory> memory = HostMemory::allocate(bytes, "the rows of a product");
    if (!memory) return memory.status();
    staged_ = std::move(*memory);
  }
  constexpr int64_t kRowsOfTask = 16;
  const int64_t num_tasks = (x.rows + kRowsOfTask - 1) / kRowsOfTask;
  threads_.parallel_for(num_tasks, [&](int64_t task, int) {
    const int64_t end = std::min(x.rows, (task + 1) * kRowsOfTask);
    for (int64_t r = task * kRowsOfTask; r < end; ++r) {
      std::byte* out = staged_.data() + static_cast<size_t>(r) * row_bytes;
      if (types_.storage == types_.product) {
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
    const MatmulShape shape{chunk_rows, weight.in_features(), slice.count, types_.onednn()};
    std::unique_ptr<Matmul>& matmul = matmuls_[shape];
    if (!matmul) {
      const auto description = describe_matmul(engine_, shape, slice.packed.get_desc());
      auto made = std::make_unique<Matmul>();
      made->primitive = dnnl::matmul(description);
      made->scratchpad_bytes = description.scratchpad_desc().get_size();
      for (const auto& worker : workers_) {
        made->memories.push_back({dnnl::memory(shape.src(), engine_, nullptr),
                                  dnnl::memory(shape.dst(), engine_, worker->result.data()),
                                  dnnl::memory(description.scratchpad_desc(), engine_, nullptr)});
      }
      matmul = std::move(made);
    }
    slice_matmuls_.push_back(matmul.get());
  }
}

Status LinearRunner::reserve_scratchpads() {
  size_t bytes = 0;
  for (const Matmul* matmul : slice_matmuls_) bytes = std::max(bytes, matmul->scratchpad_bytes);
  for (const auto& worker : workers_) {
    if (worker->scratchpad.size_bytes() >= bytes) continue;
    Expected<HostMemory> memory = HostMemory::allocate(bytes, "oneDNN's scratchpad");
    if (!memory) return memory.status();
    worker->scratchpad = std::move(*memory);
  }
  return {};
}

Status LinearRunner::run(const PackedWeight& weight, const TensorView& x, const TensorView& out,
                         bool accumulate) {
  if (x.rows == 0) return {};
  const Chunks chunks = cut_rows(x.rows);
  const SerialOpenMp serial;  // a primitive is cut for the threads that its creator has
  try {
    find_matmuls(weight, chunks.rows);
  } catch (const dnnl::error& error) {
    return internal_error("oneDNN has no product of " + std::to_string(chunks.rows) + " x " +
                          std::to_string(weight.in_features()) + " by " +
                          std::to_string(weight.out_features()) + ": " + error.what());
  }
  if (Status status = reserve_scratchpads(); !status) return status;

  const std::byte* rows = x.row(0);
  if (types_.storage != types_.product || x.row_stride != x.cols || chunks.rows > x.rows) {
    if (Status status = stage(x, std::max(x.rows, chunks.rows)); !status) return status;
    rows = staged_.data();
  }
  const size_t row_bytes = static_cast<size_t>(x.cols) * dtype_size(types_.product);
  const int64_t last_begin = std::max<int64_t>(0, x.rows - chunks.rows);

  std::atomic<bool> failed = false;
  const auto multiply = [&](int64_t task, int worker_index) {
    Worker& worker = *workers_[worker_index];
    const int64_t chunk = task % chunks.count;
    const int64_t s = task / chunks.count;
    const PackedWeight::Slice& slice = weight.slices()[s];
    const Matmul& matmul = *slice_matmuls_[s];
    const Matmul::Memories& memories = matmul.memories[worker_index];
    const int64_t begin = std::min(chunk * chunks.rows, last_begin);
    omp_set_num_threads(1);
    void* source = const_cast<std::byte*>(rows + static_cast<size_t>(begin) * row_bytes);
    if (dnnl_memory_set_data_handle(memories.src.get(), source) != dnnl_success ||
        dnnl_memory_set_data_handle(memories.scratchpad.get(), worker.scratchpad.data()) !=
            dnnl_success) {
      failed = true;
      return;
    }
    const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_SRC, memories.src.get()},
                                         {DNNL_ARG_WEIGHTS, slice.packed.get()},
                                         {DNNL_ARG_DST, memories.dst.get()},
                                         {DNNL_ARG_SCRATCHPAD, memories.scratchpad.get()}};
    if (dnnl_primitive_execute(matmul.primitive.get(), worker.stream.get(), std::size(arguments),
                               arguments) != dnnl_success) {
      failed = true;
      return;
    }
    const int64_t first_new = chunk * chunks.rows;  // rows before it belong to the chunk before
    const int64_t end = std::min(x.rows, first_new + chunks.rows);
    const auto* result = reinterpret_cast<const float*>(worker.result.data());
    kernels_.store_tile(result + (first_new - begin) * slice.count, slice.count,
                        out.row_as<float>(first_new) + slice.begin, out.row_stride, end - first_new,
                        slice.count, accumulate);
  };
  threads_.parallel_for(static_cast<int64_t>(weight.slices().size()) * chunks.count,
                        [&multiply](int64_t task, int worker) { multiply(task, worker); });
  return failed ? internal_error("a product of oneDNN failed") : Status();
}

}  // namespace anyslot::cpu
