#pragma once

#include <cstdint>

// Barriers in shared memory that copies arrive at, and copies by the tensor memory accelerator: of
// sm_90 and later.

namespace anyslot::cuda {

/// A barrier in shared memory with phases 0, 1, 0, ...
__device__ inline void init_barrier(uint32_t barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
/// Shows initialized barriers to the accelerator.
__device__ inline void show_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ inline void arrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
/// Arrives; the phase ends once so many bytes have been copied, too.
__device__ inline void arrive_expecting(uint32_t barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}
__device__ inline void wait_for_phase(uint32_t barrier, int phase) {
  asm volatile(
      "{\n.reg .pred done;\nWAIT:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@done bra DONE;\nbra WAIT;\nDONE:\n}" ::"r"(barrier),
      "r"(phase)
      : "memory");
}

/// Coordinates of a box, innermost first.
struct BoxPlace {
  int at[4];
};
/// Copies a box of the tensor that `map` (in device memory) describes in the background. What of it
/// lies outside of the tensor becomes zeros.
__device__ inline void copy_box(uint32_t to, const void* map, const BoxPlace& place,
                                uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%2, %3, %4, %5}], [%6];" ::"r"(to),
      "l"(map), "r"(place.at[0]), "r"(place.at[1]), "r"(place.at[2]), "r"(place.at[3]), "r"(barrier)
      : "memory");
}

}  // namespace anyslot::cuda
