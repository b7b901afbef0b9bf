#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include "backend/cuda/elements.cuh"
#include "backend/cuda/mma.cuh"

// Instructions of sm_90a: products of a warp group of 128 threads with a right side in shared
// memory, and registers that move between warp groups.

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define ANYSLOT_HAS_WGMMA 1
#else
#define ANYSLOT_HAS_WGMMA 0
#endif

namespace anyslot::cuda {

#if ANYSLOT_HAS_WGMMA

template <int kRegisters>
__device__ inline void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ inline void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

/// The registers that products read and write are settled.
__device__ inline void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ inline void commit_products() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int kPending>
__device__ inline void wait_for_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

/// A matrix in shared memory whose rows are 128 bytes with the 128-byte swizzle, 8 of them 1024
/// bytes: chunk c of 16 bytes of row r lies at c ^ (r % 8). block_bytes: to the next 64 columns,
/// for one whose columns are not the dimension that is summed over.
__device__ inline uint64_t matrix_descriptor(uint32_t address, uint32_t block_bytes) {
  constexpr uint64_t kEightRows = 1024 >> 4;
  constexpr uint64_t kSwizzle128 = uint64_t{1} << 62;
  return (address & 0x3ffffU) >> 4 | uint64_t{block_bytes >> 4} << 16 | kEightRows << 32 |
         kSwizzle128;
}

/// The same matrix, or a part of it, so many bytes further; a multiple of 16.
__device__ inline uint64_t moved(uint64_t descriptor, uint32_t bytes) {
  return descriptor + (bytes >> 4);
}

/// What is computed of c before this stands before it in the program too, and so does not wait for
/// products that are waited for after it.
__device__ inline void settle(float (&c)[16][4]) {
#pragma unroll
  for (int n = 0; n < 16; ++n) {
#pragma unroll
    for (int e = 0; e < 4; ++e) asm volatile("" : "+f"(c[n][e])::"memory");
  }
}

#define ANYSLOT_WGMMA(TYPE, TRANSPOSED)                                                            \
  asm volatile(                                                                                    \
      "{\n.reg .pred add;\nsetp.ne.b32 add, %69, 0;\n"                                             \
      "wgmma.mma_async.sync.aligned.m64n128k16.f32." TYPE "." TYPE                                 \
      " {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, "    \
      "%19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, " \
      "%37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, " \
      "%55, %56, %57, %58, %59, %60, %61, %62, %63}, {%64, %65, %66, %67}, %68, add, 1, "          \
      "1, " TRANSPOSED ";\n}"                                                                      \
      : "+f"(c[0][0]), "+f"(c[0][1]), "+f"(c[0][2]), "+f"(c[0][3]), "+f"(c[1][0]), "+f"(c[1][1]),  \
        "+f"(c[1][2]), "+f"(c[1][3]), "+f"(c[2][0]), "+f"(c[2][1]), "+f"(c[2][2]), "+f"(c[2][3]),  \
        "+f"(c[3][0]), "+f"(c[3][1]), "+f"(c[3][2]), "+f"(c[3][3]), "+f"(c[4][0]), "+f"(c[4][1]),  \
        "+f"(c[4][2]), "+f"(c[4][3]), "+f"(c[5][0]), "+f"(c[5][1]), "+f"(c[5][2]), "+f"(c[5][3]),  \
        "+f"(c[6][0]), "+f"(c[6][1]), "+f"(c[6][2]), "+f"(c[6][3]), "+f"(c[7][0]), "+f"(c[7][1]),  \
        "+f"(c[7][2]), "+f"(c[7][3]), "+f"(c[8][0]), "+f"(c[8][1]), "+f"(c[8][2]), "+f"(c[8][3]),  \
        "+f"(c[9][0]), "+f"(c[9][1]), "+f"(c[9][2]), "+f"(c[9][3]), "+f"(c[10][0]),                \
        "+f"(c[10][1]), "+f"(c[10][2]), "+f"(c[10][3]), "+f"(c[11][0]), "+f"(c[11][1]),            \
        "+f"(c[11][2]), "+f"(c[11][3]), "+f"(c[12][0]), "+f"(c[12][1]), "+f"(c[12][2]),            \
        "+f"(c[12][3]), "+f"(c[13][0]), "+f"(c[13][1]), "+f"(c[13][2]), "+f"(c[13][3]),            \
        "+f"(c[14][0]), "+f"(c[14][1]), "+f"(c[14][2]), "+f"(c[14][3]), "+f"(c[15][0]),            \
        "+f"(c[15][1]), "+f"(c[15][2]), "+f"(c[15][3])                                             \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add))

/// c += a b in the background: (64, 16) of the warp group by (16, 128) in shared memory, or c = a b
/// unless `add`. A warp's 16 rows lie as those of mma.m16n8k16. kRowsAreSummed: a row of b is one
/// of the 16 that are summed over, as of V; else one of the 128 columns of c, as of K.
template <typename T, bool kRowsAreSummed>
__device__ inline void multiply_group(float (&c)[16][4], const uint32_t (&a)[4], uint64_t b,
                                      int add) {
  if constexpr (std::is_same_v<T, bf16>) {
    if constexpr (kRowsAreSummed) {
      ANYSLOT_WGMMA("bf16", "1");
    } else {
      ANYSLOT_WGMMA("bf16", "0");
    }
  } else {
    if constexpr (kRowsAreSummed) {
      ANYSLOT_WGMMA("f16", "1");
    } else {
      ANYSLOT_WGMMA("f16", "0");
    }
  }
}

#undef ANYSLOT_WGMMA

#endif  // ANYSLOT_HAS_WGMMA

}  // namespace anyslot::cuda
