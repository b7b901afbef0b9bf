#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/hash.h"

namespace anyslot {

/// Identifies weights: SHA-256 over name, type, shape and data of every tensor. Up to 256 MiB of
/// weights are hashed whole. Of more, which would take minutes, each tensor gives its first and
/// last 4 KiB and 4 KiB from every 4 MiB: training changes all of a tensor, so other checkpoints
/// are told apart, but a hand-made edit between the samples is not seen.
class WeightDigest {
 public:
  explicit WeightDigest(size_t total_bytes);

  /// In an order that does not depend on where the tensors lie.
  void add(std::string_view name, std::string_view type, std::span<const int64_t> shape,
           std::span<const std::byte> data);
  Digest finish() { return builder_.finish(); }

 private:
  bool whole_;
  DigestBuilder builder_;
};

}  // namespace anyslot
