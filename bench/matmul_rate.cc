#include "matmul_rate.h"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "backend/cpu/onednn_matmul.h"
#include "timing.h"

namespace anyslot::bench {

namespace {

struct Product {
  dnnl::matmul primitive;
  dnnl::memory source;
  dnnl::memory weights;
  dnnl::memory result;
};

/// Full of small numbers: memory that was never written is all the same page of zeros.
dnnl::memory written_memory(const dnnl::memory::desc& description, const dnnl::engine& engine) {
  dnnl::memory memory(description, engine);
  std::memset(memory.get_data_handle(), 0x3c, description.get_size());
  return memory;
}

Product make_product(const dnnl::engine& engine, const MatmulShape& shape,
                     dnnl::memory::data_type type) {
  using dnnl::memory;
  const memory::desc source({shape.rows, shape.in}, type, memory::format_tag::ab);
  const memory::desc weights({shape.in, shape.out}, type, memory::format_tag::any);
  const memory::desc result({shape.rows, shape.out}, memory::data_type::f32,
                            memory::format_tag::ab);
  const auto description =
      cpu::matmul_primitive_desc(engine, source, weights, result, dnnl::primitive_attr());
  return {dnnl::matmul(description), written_memory(description.src_desc(), engine),
          written_memory(description.weights_desc(), engine),
          written_memory(description.dst_desc(), engine)};
}

/// How long OpenMP's threads wait busily for more work: whatever is measured next must not share
/// its cores with them.
constexpr std::chrono::milliseconds kBusyWait{20};

void wake_threads() {
  std::atomic<int> awake = 0;
#pragma omp parallel
  ++awake;
}

/// Sets OpenMP's threads for a scope.
class OmpThreads {
 public:
  explicit OmpThreads(int num_threads) : before_(omp_get_max_threads()) {
    if (num_threads > 0) omp_set_num_threads(num_threads);
  }
  ~OmpThreads() { omp_set_num_threads(before_); }
  OmpThreads(const OmpThreads&) = delete;
  OmpThreads& operator=(const OmpThreads&) = delete;

 private:
  int before_;
};

}  // namespace

struct OnednnProducts::Impl {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  std::vector<Product> products;
};

ComputeType onednn_compute_type(ComputeType dtype) {
  if (dtype != ComputeType::kBFloat16) return ComputeType::kFloat32;
  try {
    make_product(dnnl::engine(dnnl::engine::kind::cpu, 0), {16, 16, 16},
                 dnnl::memory::data_type::bf16);
  } catch (const dnnl::error& error) {
    if (error.status != dnnl_unimplemented) throw;
    return ComputeType::kFloat32;
  }
  return ComputeType::kBFloat16;
}

OnednnProducts::OnednnProducts(const std::vector<MatmulShape>& shapes, ComputeType dtype,
                               int num_threads)
    : impl_(std::make_unique<Impl>()), num_threads_(num_threads) {
  const OmpThreads threads(num_threads_);
  const auto type = onednn_compute_type(dtype) == ComputeType::kBFloat16
                        ? dnnl::memory::data_type::bf16
                        : dnnl::memory::data_type::f32;
  for (const MatmulShape& shape : shapes) {
    impl_->products.push_back(make_product(impl_->engine, shape, type));
    operations_ += shape.operations();
  }
}

OnednnProducts::~OnednnProducts() = default;

double OnednnProducts::run() {
  const OmpThreads threads(num_threads_);
  wake_threads();
  const auto start = std::chrono::steady_clock::now();
  for (Product& product : impl_->products) {
    product.primitive.execute(impl_->stream, {{DNNL_ARG_SRC, product.source},
                                              {DNNL_ARG_WEIGHTS, product.weights},
                                              {DNNL_ARG_DST, product.result}});
  }
  impl_->stream.wait();
  const double seconds = seconds_since(start);
  std::this_thread::sleep_for(kBusyWait);
  return seconds;
}

double onednn_rate(const std::vector<MatmulShape>& shapes, ComputeType dtype) {
  OnednnProducts products(shapes, dtype);
  double best = 1e30;
  for (int round = 0; round < 5; ++round) best = std::min(best, products.run());
  return products.operations() / best;
}

}  // namespace anyslot::bench
