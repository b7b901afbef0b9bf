#include "backend/cpu/dot_formats.h"
#include "backend/cpu/kernel_tables.h"
#include "backend/cpu/kv_kernels.h"
#include "backend/cpu/panel_kernels.h"
#include "backend/cpu/row_kernels.h"
#include "backend/cpu/simd_avx512.h"

namespace anyslot::cpu {

namespace {

constexpr KvKernels kBfloat16Kv = kv_kernels<WidenedDot<Avx512, bf16_t>>();
constexpr KvKernels kFloat32Kv = kv_kernels<Float32Dot<Avx512>>();
constexpr KvKernels kFp8Kv = kv_kernels<WidenedDot<Avx512, fp8_e4m3_t>>();

constexpr PanelKernels kPanels[] = {
    panel_kernels<WidenedPanel<Avx512, float>>(),
    panel_kernels<WidenedPanel<Avx512, bf16_t>>(),
    panel_kernels<WidenedPanel<Avx512, int8_t>>(),
};

}  // namespace

constinit const KernelTable kAvx512Kernels =
    kernel_table<Avx512>("avx512", &kBfloat16Kv, &kFloat32Kv, &kFp8Kv, kPanels);

}  // namespace anyslot::cpu
