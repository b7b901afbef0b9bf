#include "backend/cpu/dot_formats.h"
#include "backend/cpu/kernel_tables.h"
#include "backend/cpu/kv_kernels.h"
#include "backend/cpu/panel_formats_bf16.h"
#include "backend/cpu/panel_kernels.h"
#include "backend/cpu/row_kernels.h"
#include "backend/cpu/simd_avx512_bf16.h"

namespace anyslot::cpu {

namespace {

/// bfloat16 K and V against operands that are rounded to bfloat16 too.
struct Bf16Dot {
  using Simd = Avx512Bf16;
  using Operand = bf16_t;
  using Element = bf16_t;
  static constexpr int kPack = 2;
  static constexpr int kRows = 6;
  static constexpr int kCols = 4;
  // The weights are rounded to 2^-9 of their size, 20 times the error of three terms.
  static constexpr int kExpDegree = 3;
  static constexpr float kUnit = 1;

  struct Packed {
    __m512i x;
  };
  static Packed load(const std::byte* p) { return {_mm512_loadu_si512(p)}; }
  static void add_product(__m512& sum, const Packed& b, const Operand* a) {
    int pair;
    __builtin_memcpy(&pair, a, sizeof pair);
    sum = Avx512Bf16::dot_pairs(sum, b.x, _mm512_set1_epi32(pair));
  }
  static void store_operands(Operand* p, __m512 x) { Avx512Bf16::store_bf16(p, x); }
  static void store_operands(Operand* p, __m512 x, __m512 y) { Avx512Bf16::store_bf16(p, x, y); }
};

constexpr KvKernels kBfloat16Kv = kv_kernels<Bf16Dot>();
constexpr KvKernels kFloat32Kv = kv_kernels<Float32Dot<Avx512Bf16>>();
constexpr KvKernels kFp8Kv = kv_kernels<WidenedDot<Avx512Bf16, fp8_e4m3_t>>();

constexpr PanelKernels kPanels[] = {
    panel_kernels<Bf16Panel>(),
    panel_kernels<Int8Panel>(),
    panel_kernels<WidenedPanel<Avx512Bf16, float>>(),
    panel_kernels<WidenedPanel<Avx512Bf16, bf16_t>>(),
    panel_kernels<WidenedPanel<Avx512Bf16, int8_t>>(),
};

}  // namespace

constinit const KernelTable kAvx512Bf16Kernels =
    kernel_table<Avx512Bf16>("avx512_bf16", &kBfloat16Kv, &kFloat32Kv, &kFp8Kv, kPanels);

}  // namespace anyslot::cpu
