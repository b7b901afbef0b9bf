#pragma once

#include <cstddef>
#include <cstdint>

// Loops that do nothing but what a ceiling of the machine counts. Like kernels.h the interface is
// plain data, as each instruction set's loops are compiled with flags of their own.

namespace anyslot::cpu {

/// Multiplications and additions between registers alone.
struct ArithmeticLoop {
  /// Returns a sum that depends on all of the work.
  float (*run)(int64_t iterations) = nullptr;
  int64_t operations = 0;  // of an iteration; a multiplication and an addition count apiece
};

/// One instruction set's loops.
struct RateKernels {
  const char* name;  // as in kernel_list.h
  ArithmeticLoop float32;
  ArithmeticLoop bfloat16;  // in the instructions that the set has for it, else in float32
  /// Reads `bytes`, a multiple of 4 KiB, as several streams; returns something that depends on all.
  uint64_t (*read)(const std::byte* data, size_t bytes);
};

// Constant-initialized: reading one runs no code of its instruction set.
extern const RateKernels kAvx2RateKernels;
extern const RateKernels kAvx512RateKernels;
extern const RateKernels kAvx512Bf16RateKernels;

}  // namespace anyslot::cpu
