#include "backend/cuda/block_copier.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "backend/cuda/cuda_check.h"
#include "backend/cuda/kv_kernels.h"

namespace anyslot::cuda {

BlockCopier::~BlockCopier() {
  if (side_ == nullptr) return;
  cudaStreamSynchronize(side_);
  cudaStreamDestroy(side_);
}

Status BlockCopier::open() { return cuda_status(cudaStreamCreate(&side_), "opening a stream"); }

Status BlockCopier::let_wait(cudaStream_t stream) {
  return std::exchange(pending_, false) ? done_.let_wait(stream) : Status();
}

Status BlockCopier::run(CudaKvStorage& storage, std::span<const BlockCopy> copies,
                        std::span<const RopeTable* const> rope, cudaStream_t stream) {
  const KvShape& shape = storage.shape();
  const int max_pairs = shape.head_dim / 2;
  std::vector<double> inv_freq(rope.size() * max_pairs);
  std::vector<int> num_pairs;
  for (size_t layer = 0; layer < rope.size(); ++layer) {
    std::ranges::copy(rope[layer]->parameters().inv_freq, inv_freq.begin() + layer * max_pairs);
    num_pairs.push_back(rope[layer]->num_pairs());
  }
  const size_t freq_bytes = inv_freq.size() * sizeof(double);
  const size_t copy_bytes = copies.size_bytes();
  const size_t bytes = freq_bytes + copy_bytes + num_pairs.size() * sizeof(int);
  if (Status status = orders_.reserve(bytes, bytes, "block copies"); !status) return status;
  std::memcpy(orders_.host(), inv_freq.data(), freq_bytes);
  std::memcpy(orders_.host() + freq_bytes, copies.data(), copy_bytes);
  std::memcpy(orders_.host() + freq_bytes + copy_bytes, num_pairs.data(),
              num_pairs.size() * sizeof(int));
  if (Status status = orders_.send(bytes, side_, "block copies"); !status) return status;
  // The blocks are read after the steps that wrote them, and written after those that read them.
  if (Status status = before_.record(stream); !status) return status;
  if (Status status = before_.let_wait(side_); !status) return status;
  const auto* staged = orders_.as<const std::byte>();
  const KvCopy copy{storage.layer(0),
                    storage.layer_bytes(),
                    shape.dtype,
                    shape.num_layers,
                    shape.num_kv_heads,
                    shape.head_dim,
                    reinterpret_cast<const double*>(staged),
                    reinterpret_cast<const int*>(staged + freq_bytes + copy_bytes)};
  if (Status status =
          launch_copy_blocks(copy, reinterpret_cast<const BlockCopy*>(staged + freq_bytes),
                             static_cast<int>(copies.size()), side_);
      !status) {
    return status;
  }
  Status status = done_.record(side_);
  // What cannot be waited for must not go on: others will write the blocks.
  if (!status) static_cast<void>(cuda_status(cudaStreamSynchronize(side_), "block copies"));
  pending_ = status.ok();
  return status;
}

}  // namespace anyslot::cuda
