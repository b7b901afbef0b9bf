#include "matmul_rate.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "backend/cpu/onednn_matmul.h"

namespace anyslot::bench {

namespace {

struct Product {
  dnnl::matmul primitive;
  dnnl::memory source;
  dnnl::memory weights;
  dnnl::memory result;
};

Product make_product(const dnnl::engine& engine, const MatmulShape& shape,
                     dnnl::memory::data_type type) {
  using dnnl::memory;
  const memory::desc source({shape.rows, shape.in}, type, memory::format_tag::ab);
  const memory::desc weights({shape.in, shape.out}, type, memory::format_tag::any);
  const memory::desc result({shape.rows, shape.out}, memory::data_type::f32,
                            memory::format_tag::ab);
  const auto description =
      cpu::matmul_primitive_desc(engine, source, weights, result, dnnl::primitive_attr());
  return {dnnl::matmul(description), memory(description.src_desc(), engine),
          memory(description.weights_desc(), engine), memory(description.dst_desc(), engine)};
}

}  // namespace

double onednn_rate(const std::vector<MatmulShape>& shapes, ComputeType dtype) {
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  const auto type = dtype == ComputeType::kBFloat16 ? dnnl::memory::data_type::bf16
                                                    : dnnl::memory::data_type::f32;
  std::vector<Product> products;
  double operations = 0;
  for (const MatmulShape& shape : shapes) {
    products.push_back(make_product(engine, shape, type));
    operations += 2.0 * static_cast<double>(shape.rows * shape.in * shape.out);
  }
  double best = 1e30;
  for (int round = 0; round < 5; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (Product& product : products) {
      product.primitive.execute(stream, {{DNNL_ARG_SRC, product.source},
                                         {DNNL_ARG_WEIGHTS, product.weights},
                                         {DNNL_ARG_DST, product.result}});
    }
    stream.wait();
    best = std::min(
        best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return operations / best;
}

}  // namespace anyslot::bench
