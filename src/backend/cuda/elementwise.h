#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "anyslot/status.h"
#include "backend/ops.h"
#include "base/tensor_view.h"

// Matrices are row-major in device memory; see ops.h for what each operation computes.

namespace anyslot::cuda {

/// out[r] = x[r], widened to float32.
Status launch_widen(const TensorView& x, const TensorView& out, cudaStream_t stream);
Status launch_rms_norm(const TensorView& x, const float* weight, float epsilon,
                       const TensorView& out, cudaStream_t stream);
/// In place, on parts of `part` columns, which divides x.cols.
Status launch_rms_norm_parts(const TensorView& x, const float* weight, int64_t part, float epsilon,
                             cudaStream_t stream);
Status launch_add_bias(const TensorView& x, const float* bias, cudaStream_t stream);
Status launch_scale(const TensorView& x, float factor, const TensorView& out, cudaStream_t stream);
Status launch_add_scaled(const TensorView& x, float factor, const TensorView& out,
                         cudaStream_t stream);
Status launch_gated(Activation activation, const TensorView& gate_up, const TensorView& out,
                    cudaStream_t stream);
Status launch_soft_cap(const TensorView& x, float cap, cudaStream_t stream);
/// out[k] = x[indices[k]]
Status launch_gather(const TensorView& x, const int32_t* indices, const TensorView& out,
                     cudaStream_t stream);

/// tokens[r]: the column of the largest element of row r, the first of equal ones; -1 when one is
/// not finite. x: float32.
Status launch_argmax(const TensorView& x, int32_t* tokens, cudaStream_t stream);

}  // namespace anyslot::cuda
