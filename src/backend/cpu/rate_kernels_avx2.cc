#include "backend/cpu/rate_loops.h"
#include "backend/cpu/simd_avx2.h"

namespace anyslot::cpu {

constinit const RateKernels kAvx2RateKernels = {"avx2", multiply_add_loop<Avx2>(),
                                                multiply_add_loop<Avx2>(), read_memory};

}  // namespace anyslot::cpu
