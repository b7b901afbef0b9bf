#include "backend/cpu/dot_formats.h"
#include "backend/cpu/kernel_tables.h"
#include "backend/cpu/kv_kernels.h"
#include "backend/cpu/panel_kernels.h"
#include "backend/cpu/row_kernels.h"
#include "backend/cpu/simd_avx2.h"

namespace anyslot::cpu {

namespace {

constexpr KvKernels kBfloat16Kv = kv_kernels<WidenedDot<Avx2, bf16_t>>();
constexpr KvKernels kFloat32Kv = kv_kernels<Float32Dot<Avx2>>();
constexpr KvKernels kFp8Kv = kv_kernels<WidenedDot<Avx2, fp8_e4m3_t>>();

constexpr PanelKernels kPanels[] = {
    panel_kernels<WidenedPanel<Avx2, float>>(),
    panel_kernels<WidenedPanel<Avx2, bf16_t>>(),
    panel_kernels<WidenedPanel<Avx2, int8_t>>(),
};

}  // namespace

constinit const KernelTable kAvx2Kernels =
    kernel_table<Avx2>("avx2", &kBfloat16Kv, &kFloat32Kv, &kFp8Kv, kPanels);

}  // namespace anyslot::cpu
