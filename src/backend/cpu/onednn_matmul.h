#pragma once

#include <oneapi/dnnl/dnnl.hpp>

namespace anyslot::cpu {

/// The one place where the interfaces of oneDNN 2 and 3 differ: onednn_matmul_v2.cc,
/// onednn_matmul_v3.cc.
dnnl::matmul::primitive_desc matmul_primitive_desc(const dnnl::engine& engine,
                                                   const dnnl::memory::desc& src,
                                                   const dnnl::memory::desc& weights,
                                                   const dnnl::memory::desc& dst,
                                                   const dnnl::primitive_attr& attributes);

}  // namespace anyslot::cpu
