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
  if (Status status = step_.check_embed(table, out); !status) return status;
  if (out.rows == 0) return {};
  const size_t bytes = table.row_bytes() * static_cast<size_t>(out.rows);
  if (Status status = embeddings_.reserve(bytes, bytes, "embedding rows"); !status) return status;
  std::byte* to = embeddings_.host();
  for (const Row& row : step_.plan().rows) {
    std::memcpy(to, table.row(row.token_id), table.row_bytes());
    to += table.row_bytes();
  }
  if (Status status = embeddings_.send(bytes, stream_, "embedding rows"); !status) return status;
  return launch_widen({embeddings_.as<void>(), table.dtype, out.rows, table.cols, table.cols}, out,
                      stream_);
}

Expected<const float*> CudaBackend::mirrored(const float* values, int64_t count) {
  MirroredVector& mirror = mirrors_[values];
  if (std::equal(mirror.host.begin(), mirror.host.end(), values, values + count)) {
    return mirror.device.as<const float>();
  }
  ++memory_version_;
  mirror.host.clear();  // until the device has the new ones
  const size_t bytes = static_cast<size_t>(count) * sizeof(float);
  if (Status status = mirror.device.reserve(bytes, "a norm's weight or a bias"); !status)
    return status;
  if (Status status =
          cuda_status(cudaMemcpy(mirror.device.data(), values, bytes, cudaMemcpyHostToDevice),
                      "copying a norm's weight or a bias");
      !status) {
    return status;
  }
  mirror.host.assign(values, values + count);
  return mirror.device.as<const float>();
}

Status CudaBackend::rms_norm(const TensorView& x, const float* weight, float epsilon,
                             const TensorView& out) {
  if (Status status = check_rms_norm(x, out, dtype_); !status) return status;
  const Expected<const float*> mirror = mirrored(weight, x.cols);
  if (!mirror) return mirror.status();
  return launch_rms_norm(x, *mirror, epsilon, out, stream_);
}

Status CudaBackend::rms_norm_parts(const TensorView& x, std::span<const float> weight,
                                   float epsilon) {
  if (Status status = check_rms_norm_parts(x, weight); !status) return status;
  const auto part = static_cast<int64_t>(weight.size());
  const Expected<const float*> mirror = mirrored(weight.data(), part);
  if (!mirror) return mirror.status();
  return launch_rms_norm_parts(x, *mirror, part, epsilon, stream_);
}

Status CudaBackend::add_bias(const TensorView& x, std::span<const float> bias) {
  if (Status status = check_add_bias(x, bias); !status) return status;
  const Expected<const float*> mirror = mirrored(bias.data(), x.cols);
  if (!mirror) return mirror.status();
  return launch_add_bias(x, *mirror, stream_);
}

Status CudaBackend::scale(const TensorView& x, float factor, const TensorView& out) {
  if (Status status = check_scale(x, out, dtype_); !status) return status;
  return launch_scale(x, factor, out, stream_);
}

Status CudaBackend::add_scaled(const TensorView& x, float factor, const TensorView& out) {
  if (Status status = check_add_scaled(x, out); !status) return status;
  return launch_add_scaled(x, factor, out, stream_);
}

Status CudaBackend::linear(const LinearWeight& weight, const TensorView& x, const TensorView& out,
                           bool accumulate) {
  if (Status status = check_linear(weight, x, out, dtype_); !status) return status;
  return products_->run(static_cast<const CudaLinearWeight&>(weight), x, out, accumulate, stream_);
}

Status CudaBackend::write_kv(KvStorage& storage, int layer, const AttentionSpec& spec,
                             const TensorView& k, const TensorView& v) {
  if (Status status = step_.check_write_kv(storage.shape(), layer, spec, k, v); !status) {
    return status;
  }
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
  if (Status status = step_.check_attention(storage.shape(), layer, spec, rows, q, out, dtype_);
      !status) {
    return status;
  }
  if (Status status = check_needs({.score_caps = spec.score_cap > 0}); !status) return status;
  if (storage.shape().dtype != dtype_ && storage.shape().dtype != DType::kFloat8E4M3) {
    return invalid_argument("the KV pool has another dtype than the backend, and not fp8_e4m3");
  }
  const auto has_window = [&](const WindowPlans& plans) { return plans.all.window == spec.window; };
  const auto plans = std::ranges::find_if(plans_, has_window);
  if (plans == plans_.end()) return unknown_window(spec.window);
  num_heads_ = spec.num_heads;
  group_ = spec.num_heads / spec.num_kv_heads;
  head_dim_ = spec.head_dim;
  if (q.rows == 0) return {};
  if (Status status = wait_for_copies(); !status) return status;
  const Expected<StepData::Rotations> rotations = data_.rotations(*spec.rope, recording_, stream_);
  if (!rotations) return rotations.status();
  const bool all = rows == RowSet::kAll;
  return attention_.run(
      {static_cast<const CudaKvStorage&>(storage), layer, spec, all ? plans->all : plans->sampled,
       data_, *rotations, q, out, all ? nullptr : data_.sampled_rows(), recording_},
      stream_);
}

Status CudaBackend::gated(Activation activation, const TensorView& gate_up, const TensorView& out) {
  if (Status status = check_gated(gate_up, out, dtype_); !status) return status;
  return launch_gated(activation, gate_up, out, stream_);
}

Status CudaBackend::soft_cap(const TensorView& x, float cap) {
  if (Status status = check_soft_cap(x, cap); !status) return status;
  return launch_soft_cap(x, cap, stream_);
}

/// The operations on experts' rows that every backend has are for host memory.
Status CudaBackend::choose_experts(const TensorView&, const ExpertChoice&, ExpertRows&) {
  return check_needs({.experts = true});
}

Status CudaBackend::gather_rows(const TensorView&, std::span<const int32_t>, const TensorView&) {
  return check_needs({.experts = true});
}

Status CudaBackend::add_rows(const TensorView&, std::span<const int32_t>, std::span<const float>,
                             const TensorView&) {
  return check_needs({.experts = true});
}

Status CudaBackend::gather_sampled(const TensorView& x, const TensorView& out) {
  if (Status status = step_.check_gather_sampled(x, out); !status) return status;
  return launch_gather(x, data_.sampled_rows(), out, stream_);
}

Status CudaBackend::download(const TensorView& x, std::span<float> out) {
  if (Status status = check_download(x, out); !status) return status;
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
