#include "backend/cpu/cpu_features.h"

namespace anyslot::cpu {

// The compiler's run-time library asks the operating system too (XGETBV) before it reports AVX.
CpuFeatures detect_cpu_features() {
  __builtin_cpu_init();
  CpuFeatures features;
  features.avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("f16c");
  features.avx512 = features.avx2 && __builtin_cpu_supports("avx512f") &&
                    __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
                    __builtin_cpu_supports("avx512dq");
  features.avx512_bf16 = features.avx512 && __builtin_cpu_supports("avx512bf16") &&
                         __builtin_cpu_supports("avx512vnni");
  return features;
}

}  // namespace anyslot::cpu
