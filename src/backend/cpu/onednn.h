#pragma once

#include <cstdint>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <string_view>

namespace anyslot::cpu {

/// [rows, in_features] x [in_features, out_features], of matrices that lie densely in memory.
struct MatmulShape {
  int64_t rows = 0;
  int64_t in_features = 0;
  int64_t out_features = 0;
  dnnl::memory::data_type type =
      dnnl::memory::data_type::f32;  // of both factors; the result is float32

  auto operator<=>(const MatmulShape&) const = default;

  dnnl::memory::desc src() const;
  dnnl::memory::desc dst() const;
};

/// How [in_features, out_features] weights lie in memory.
enum class WeightsLayout : uint8_t {
  kPanels,  // as PanelKernels says, stored in the product's type
  kPlain    // row-major
};

dnnl::memory::desc weights_desc(const MatmulShape& shape, WeightsLayout layout);

/// Panels, unless oneDNN has no fast product for them; throws dnnl::error.
WeightsLayout choose_layout(const dnnl::engine& engine, dnnl::memory::data_type type);

/// The product with weights in the given layout and scratch memory from the caller; throws
/// dnnl::error.
dnnl::matmul::primitive_desc describe_matmul(const dnnl::engine& engine, const MatmulShape& shape,
                                             const dnnl::memory::desc& weights);

/// Keeps oneDNN below an instruction set of kernel_list.h (empty: no limit). The library takes one
/// limit per process, before its first use; later ones have no effect.
void limit_onednn(std::string_view max_isa);

/// Whether oneDNN multiplies bfloat16 with the machine's own instructions.
bool onednn_has_bfloat16();

/// "2.6.3"
std::string onednn_version();

}  // namespace anyslot::cpu
