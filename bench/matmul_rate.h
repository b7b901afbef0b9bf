#pragma once

#include <cstdint>
#include <vector>

#include "anyslot/config.h"

namespace anyslot::bench {

struct MatmulShape {
  int64_t rows = 0;  // M
  int64_t in = 0;    // K
  int64_t out = 0;   // N
};

/// Best of several runs of oneDNN's own products, one after the other, weights packed as it likes,
/// all threads of its own: operations per second. bfloat16 or float32 in, float32 out.
double onednn_rate(const std::vector<MatmulShape>& shapes, ComputeType dtype);

}  // namespace anyslot::bench
