#include "backend/cpu/onednn_matmul.h"

namespace anyslot::cpu {

dnnl::matmul::primitive_desc matmul_primitive_desc(const dnnl::engine& engine,
                                                   const dnnl::memory::desc& src,
                                                   const dnnl::memory::desc& weights,
                                                   const dnnl::memory::desc& dst,
                                                   const dnnl::primitive_attr& attributes) {
  return {engine, src, weights, dst, attributes};
}

}  // namespace anyslot::cpu
