#include "backend/cpu/onednn.h"

#include "backend/cpu/onednn_matmul.h"

namespace anyslot::cpu {

using dnnl::memory;

memory::desc MatmulShape::src() const {
  return {{rows, in_features}, type, memory::format_tag::ab};
}

memory::desc MatmulShape::dst() const {
  return {{rows, out_features}, memory::data_type::f32, memory::format_tag::ab};
}

memory::desc weights_desc(const MatmulShape& shape, WeightsLayout layout) {
  memory::format_tag tag = memory::format_tag::ab;
  if (layout == WeightsLayout::kPanels) {
    tag = shape.type == memory::data_type::bf16 ? memory::format_tag::BA16a64b2a
                                                : memory::format_tag::BA16a64b;
  }
  return {{shape.in_features, shape.out_features}, shape.type, tag};
}

WeightsLayout choose_layout(const dnnl::engine& engine, memory::data_type type) {
  const MatmulShape typical{256, 1024, 256, type};
  try {
    const auto with_panels =
        describe_matmul(engine, typical, weights_desc(typical, WeightsLayout::kPanels));
    const bool is_slow = std::string_view(with_panels.impl_info_str()).starts_with("ref");
    if (!is_slow) return WeightsLayout::kPanels;
  } catch (const dnnl::error&) {
    return WeightsLayout::kPlain;  // no product for panels at all
  }
  return WeightsLayout::kPlain;
}

dnnl::matmul::primitive_desc describe_matmul(const dnnl::engine& engine, const MatmulShape& shape,
                                             const memory::desc& weights) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return matmul_primitive_desc(engine, shape.src(), weights, shape.dst(), attributes);
}

void limit_onednn(std::string_view max_isa) {
  if (max_isa == "avx2") dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx2);
  if (max_isa == "avx512") dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx512_core_vnni);
  if (max_isa == "avx512_bf16") dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx512_core_bf16);
}

bool onednn_has_bfloat16() {
  const dnnl::cpu_isa isa = dnnl::get_effective_cpu_isa();
  const auto contains = [isa](dnnl::cpu_isa other) {
    const auto bits = static_cast<unsigned>(other);
    return (static_cast<unsigned>(isa) & bits) == bits;
  };
  return contains(dnnl::cpu_isa::avx512_core_bf16);
}

std::string onednn_version() {
  const dnnl_version_t* version = dnnl_version();
  return std::to_string(version->major) + "." + std::to_string(version->minor) + "." +
         std::to_string(version->patch);
}

}  // namespace anyslot::cpu
