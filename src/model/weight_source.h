#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "anyslot/status.h"
#include "base/dtype.h"
#include "base/hash.h"
#include "base/tensor_view.h"
#include "model/architecture.h"
#include "model/safetensors.h"

namespace anyslot {

/// A weight as a matrix [product of all dimensions but the last, last dimension]. Read-only.
struct LoadedTensor {
  TensorView view;
  /// What `view` lies in; null when that lives as long as the source.
  std::unique_ptr<std::byte[]> memory;
};

/// Where a decoder's weights come from.
class WeightSource {
 public:
  virtual ~WeightSource() = default;

  /// Fails with kFailedPrecondition, in one line, when the source has no such tensor of that shape.
  virtual Expected<LoadedTensor> load(const WeightRef& weight) = 0;
  /// Whether load would succeed, told from the headers of the files alone.
  virtual Status check(const WeightRef& weight) const = 0;
  /// Identifies the weights; see TensorStore::fingerprint for files.
  virtual Digest fingerprint() const = 0;
};

/// The tensors of a checkpoint.
std::unique_ptr<WeightSource> file_weights(TensorStore store);

/// Any tensor that is asked for: bfloat16 numbers that depend on the seed and the tensor's name
/// alone. Matrices are normally distributed with standard deviation 1 / sqrt(last dimension), which
/// keeps activations near 1 in any shape; vectors, norms and biases, are 1. Each tensor is made
/// when it is asked for, on `num_threads` threads.
std::unique_ptr<WeightSource> random_weights(uint64_t seed, int num_threads);

}  // namespace anyslot
