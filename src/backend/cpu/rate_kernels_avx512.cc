#include "backend/cpu/rate_loops.h"
#include "backend/cpu/simd_avx512.h"

namespace anyslot::cpu {

constinit const RateKernels kAvx512RateKernels = {"avx512", multiply_add_loop<Avx512>(),
                                                  multiply_add_loop<Avx512>(), read_memory};

}  // namespace anyslot::cpu
