#pragma once

namespace anyslot::cpu {

/// Instruction sets that both the processor and the operating system support.
struct CpuFeatures {
  bool avx2 = false;         // with FMA
  bool avx512 = false;       // F, BW, VL and DQ
  bool avx512_bf16 = false;  // dot products of bfloat16 and (VNNI) of int8, besides avx512
};

CpuFeatures detect_cpu_features();

}  // namespace anyslot::cpu
