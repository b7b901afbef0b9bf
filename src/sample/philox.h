#pragma once

#include <cstdint>

namespace anyslot {

/// A uniform number in [0, 1) that depends on nothing but (seed, choice, position): Philox4x32-10,
/// the counter-based generator of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC
/// 2011). So a token does not depend on the batch it was sampled in, nor on preemption.
double uniform_number(uint64_t seed, uint32_t choice, uint64_t position);

}  // namespace anyslot
