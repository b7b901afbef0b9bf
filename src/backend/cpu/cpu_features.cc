#include "backend/cpu/cpu_features.h"

#include <cpuid.h>

namespace anyslot::cpu {

namespace {

/// Conversions of float16, which Clang 14 has no name for in __builtin_cpu_supports. Their
/// registers are those of AVX.
bool has_f16c() {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}

}  // namespace

// The compiler's run-time library asks the operating system too (XGETBV) before it reports AVX.
CpuFeatures detect_cpu_features() {
  __builtin_cpu_init();
  CpuFeatures features;
  features.avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
  features.avx512 = features.avx2 && __builtin_cpu_supports("avx512f") &&
                    __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
                    __builtin_cpu_supports("avx512dq");
  features.avx512_bf16 = features.avx512 && __builtin_cpu_supports("avx512bf16") &&
                         __builtin_cpu_supports("avx512vnni");
  return features;
}

}  // namespace anyslot::cpu
