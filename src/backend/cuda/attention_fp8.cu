#include "backend/cuda/attention_tensor_core.cuh"

// The kernels of one type in a file of their own, so that they compile beside those of the other.

namespace anyslot::cuda {

template struct TensorCoreAttention<fp8, 64>;
template struct TensorCoreAttention<fp8, 128>;

}  // namespace anyslot::cuda
