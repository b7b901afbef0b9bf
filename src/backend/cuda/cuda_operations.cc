#include <algorithm>
#include <cstring>
#include <string>

#include "backend/cuda/cuda_backend_impl.h"
#include "backend/cuda/cuda_check.h"
#include "backend/cuda/cuda_kv_storage.h"
#include "backend/cuda/elementwise.h"
#include "backend/cuda/kv_kernels.h"
#include "backend/op_checks.h"

// The operations of a step.

namespace anyslot::cuda {

Status CudaBackend::copy_blocks(KvStorage& storage, std::span<const BlockCopy> copies,
                                std::span<const RopeTable* const> rope) {
  if (Status status = check_copies(copies, rope, storage.shape()); !status) return status;
  if (copies.empty()) return {};
  return copier_.run(static_cast<CudaKvStorage&>(storage), copies, rope, stream_);
}

/// The table stays in host memory; the step's rows of it are staged.
Status CudaBackend::embed(const TensorView& table, const TensorView& out) {
  if (Status status = check_step(); !status) return status;
  if (Status status = check_tensor("out", out, num_rows(), table.cols, DType::kFloat32); !status) {
    return status;
  }
  if (Status status = check_token_ids(step_->rows, table); !status) return status;
  if (num_rows() == 0) return {};
  const size_t bytes = table.row_bytes() * step_->rows.size();
  if (Status status = staging_free_.wait(); !status) return status;
  if (Status status = staging_.reserve(bytes); !status) return status;
  if (Status status = staged_.reserve(bytes, "embedding rows"); !status) return status;
  for (size_t r = 0; r < step_->rows.size(); ++r) {
    std::memcpy(staging_.data() + r * table.row_bytes(), table.row(step_->rows[r].token_id),
                table.row_bytes());
  }
  if (Status status = cuda_status(
          cudaMemcpyAsync(staged_.data(), staging_.data(), bytes, cudaMemcpyHostToDevice, stream_),
          "copying embedding rows");
      !status) {
    return status;
  }
  if (Status status = staging_free_.record(stream_); !status) return status;
  return launch_widen({staged_.data(), table.dtype, num_rows(), table.cols, table.cols}, out,
                      stream_);
}

Expected<const float*> CudaBackend::mirrored(const float* values, int64_t count) {
  MirroredVector& mirror = mirrors_[values];
  if (std::equal(mirror.host.begin(), mirror.host.end(), values, values + count)) {
    return mirror.device.as<const float>();
  }
  mirror.host.assign(values, values + count);
  const size_t bytes = static_cast<size_t>(count) * sizeof(float);
  if (Status status = mirror.device.reserve(bytes, "a norm's weight"); !status) return status;
  if (Status status =
          cuda_status(cudaMemcpy(mirror.device.data(), values, bytes, cudaMemcpyHostToDevice),
                      "a norm's weight");
      !status) {
    return status;
  }
  return mirror.device.as<const float>();
}

Status CudaBackend::rms_norm(const TensorView& x, const float* weight, float epsilon,
                             const TensorView& out) {
  if (Status status = check_tensor("x", x, x.rows, x.cols, DType::kFloat32); !status) return status;
  if (Status status = check_tensor("out", out, x.rows, x.cols, dtype_); !status) return status;
  const Expected<const float*> mirror = mirrored(weight, x.cols);
  if (!mirror) return mirror.status();
  return launch_rms_norm(x, *mirror, epsilon, out, stream_);
}

Status CudaBackend::linear(const LinearWeight& weight, const TensorView& x, const TensorView& out,
                           bool accumulate) {
  if (Status status = check_tensor("x", x, x.rows, weight.in_features(), dtype_); !status) {
    return status;
  }
  if (Status status = check_tensor("out", out, x.rows, weight.out_features(), DType::kFloat32);
      !status) {
    return status;
  }
  return products_->run(static_cast<const CudaLinearWeight&>(weight), x, out, accumulate, stream_);
}

Status CudaBackend::write_kv(KvStorage& storage, int layer, const AttentionSpec& spec,
                             const TensorView& k, const TensorView& v) {
  if (Status status = check_step(); !status) return status;
  if (Status status = check_spec(spec, storage.shape(), layer); !status) return status;
  const int64_t cols = int64_t{spec.num_kv_heads} * spec.head_dim;
  if (Status status = check_tensor("k", k, num_rows(), cols, DType::kFloat32); !status) {
    return status;
  }
  if (Status status = check_tensor("v", v, num_rows(), cols, DType::kFloat32); !status) {
    return status;
  }
  if (Status status = check_write_slots(step_->rows, storage.shape()); !status) return status;
  if (Status status = wait_for_copies(); !status) return status;
  const Expected<StepData::Rotations> rotations = data_.rotations(*spec.rope, recording_, stream_);
  if (!rotations) return rotations.status();
  const KvWrite write{static_cast<CudaKvStorage&>(storage).layer(layer),
                      storage.shape().dtype,
                      spec.num_kv_heads,
                      spec.head_dim,
                      spec.rope->num_pairs(),
                      data_.write_slots(),
                      rotations->writes};
  return launch_write_kv(write, k, v, stream_);
}

Status CudaBackend::attention(const KvStorage& storage, int layer, const AttentionSpec& spec,
                              RowSet rows, const TensorView& q, const TensorView& out) {
  if (Status status = check_step(); !status) return status;
  if (Status status = check_spec(spec, storage.shape(), layer); !status) return status;
  if (storage.shape().dtype != dtype_) {
    return invalid_argument("the KV pool and the backend have different dtypes");
  }
  const int64_t num = rows == RowSet::kAll ? num_rows() : num_sampled();
  const int64_t cols = int64_t{spec.num_heads} * spec.head_dim;
  if (Status status = check_tensor("q", q, num, cols, DType::kFloat32); !status) return status;
  if (Status status = check_tensor("out", out, num, cols, dtype_); !status) return status;
  for (const WindowPlans& plans : plans_) {
    if (plans.all.window != spec.window) continue;
    num_heads_ = spec.num_heads;
    group_ = spec.num_heads / spec.num_kv_heads;
    head_dim_ = spec.head_dim;
    if (num == 0) return {};
    if (Status status = wait_for_copies(); !status) return status;
    const Expected<StepData::Rotations> rotations =
        data_.rotations(*spec.rope, recording_, stream_);
    if (!rotations) return rotations.status();
    const bool all = rows == RowSet::kAll;
    return attention_.run(
        {static_cast<const CudaKvStorage&>(storage), layer, spec, all ? plans.all : plans.sampled,
         data_, *rotations, q, out, all ? nullptr : data_.sampled_rows(), recording_},
        stream_);
  }
  return invalid_argument("window " + std::to_string(spec.window) +
                          " was not announced to begin_step");
}

Status CudaBackend::gated_silu(const TensorView& gate_up, const TensorView& out) {
  if (Status status = check_tensor("gate_up", gate_up, out.rows, 2 * out.cols, DType::kFloat32);
      !status) {
    return status;
  }
  if (Status status = check_tensor("out", out, out.rows, out.cols, dtype_); !status) return status;
  return launch_gated_silu(gate_up, out, stream_);
}

Status CudaBackend::gather_sampled(const TensorView& x, const TensorView& out) {
  if (Status status = check_step(); !status) return status;
  if (Status status = check_tensor("x", x, num_rows(), x.cols, DType::kFloat32); !status) {
    return status;
  }
  if (Status status = check_tensor("out", out, num_sampled(), x.cols, DType::kFloat32); !status) {
    return status;
  }
  return launch_gather(x, data_.sampled_rows(), out, stream_);
}

Status CudaBackend::download(const TensorView& x, std::span<float> out) {
  if (Status status = check_tensor("x", x, x.rows, x.cols, DType::kFloat32); !status) return status;
  if (static_cast<int64_t>(out.size()) != x.rows * x.cols) {
    return invalid_argument("download: the destination has " + std::to_string(out.size()) +
                            " elements, must have " + std::to_string(x.rows * x.cols));
  }
  if (!out.empty()) {
    const auto row_stride = static_cast<size_t>(x.row_stride) * sizeof(float);
    if (Status status = cuda_status(
            cudaMemcpy2DAsync(out.data(), x.row_bytes(), x.data, row_stride, x.row_bytes(),
                              static_cast<size_t>(x.rows), cudaMemcpyDeviceToHost, stream_),
            "download");
        !status) {
      return status;
    }
  }
  return cuda_status(cudaStreamSynchronize(stream_), "download");
}

Status CudaBackend::argmax(const TensorView& x, std::span<int32_t> out) {
  const auto num = static_cast<int64_t>(out.size());
  if (Status status = check_tensor("x", x, num, x.cols, DType::kFloat32); !status) return status;
  if (num == 0) return {};
  if (Status status = tokens_.reserve(out.size_bytes(), "chosen tokens"); !status) return status;
  if (Status status = host_tokens_.reserve(out.size_bytes()); !status) return status;
  if (Status status = launch_argmax(x, tokens_.as<int32_t>(), stream_); !status) return status;
  if (Status status =
          cuda_status(cudaMemcpyAsync(host_tokens_.data(), tokens_.data(), out.size_bytes(),
                                      cudaMemcpyDeviceToHost, stream_),
                      "copying chosen tokens");
      !status) {
    return status;
  }
  if (Status status = cuda_status(cudaStreamSynchronize(stream_), "a step"); !status) {
    return status;
  }
  std::memcpy(out.data(), host_tokens_.data(), out.size_bytes());
  return {};
}

}  // namespace anyslot::cuda
