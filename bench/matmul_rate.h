#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "anyslot/config.h"

namespace anyslot::bench {

struct MatmulShape {
  int64_t rows = 0;  // M
  int64_t in = 0;    // K
  int64_t out = 0;   // N

  double operations() const { return 2.0 * static_cast<double>(rows * in * out); }
};

/// The type in which oneDNN multiplies what is of `dtype`: float32 for bfloat16 where it has no
/// such products, which need AVX-512. Throws dnnl::error.
ComputeType onednn_compute_type(ComputeType dtype);

/// oneDNN's own products, weights packed as it likes: onednn_compute_type() in, float32 out. Throws
/// dnnl::error.
class OnednnProducts {
 public:
  /// `num_threads`: of oneDNN's; 0 leaves it the choice.
  OnednnProducts(const std::vector<MatmulShape>& shapes, ComputeType dtype, int num_threads = 0);
  ~OnednnProducts();

  /// Runs one product after the other; returns the seconds that took.
  double run();
  double operations() const { return operations_; }

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  int num_threads_;
  double operations_ = 0;
};

/// Best of several runs: operations per second.
double onednn_rate(const std::vector<MatmulShape>& shapes, ComputeType dtype);

}  // namespace anyslot::bench
