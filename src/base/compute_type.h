#pragma once

#include "anyslot/config.h"
#include "base/dtype.h"

namespace anyslot {

constexpr DType dtype_of(ComputeType type) {
  switch (type) {
    case ComputeType::kBFloat16:
      return DType::kBFloat16;
    case ComputeType::kFloat16:
      return DType::kFloat16;
    case ComputeType::kFloat32:
      break;
  }
  return DType::kFloat32;
}

/// Of KV, beside activations of `type`.
constexpr DType kv_dtype_of(KvCacheType kv, ComputeType type) {
  return kv == KvCacheType::kFp8E4M3 ? DType::kFloat8E4M3 : dtype_of(type);
}

}  // namespace anyslot
