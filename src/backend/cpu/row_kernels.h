#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/exp_kernel.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/turn_kernel.h"

namespace anyslot::cpu {
namespace {  // NOLINT: each instruction set has its own copy, compiled with its own flags

/// The operations on single rows, and the kernels that know no K and V.
template <typename S>
struct RowFunctions {
  using Vec = typename S::Vec;

  static void store_converted(void* out, int64_t at, Vec x, int64_t count, DType dtype) {
    if (dtype == DType::kFloat32) {
      store_some<S>(static_cast<float*>(out) + at, x, count);
    } else {
      store_some_bf16<S>(static_cast<bf16_t*>(out) + at, x, count);
    }
  }

  static void rms_norm(const float* x, const float* weight, float epsilon, int64_t cols,
                       DType dtype, void* out) {
    Vec sums[2] = {S::zero(), S::zero()};
    int64_t c = 0;
    for (; c + 2 * S::kLanes <= cols; c += 2 * S::kLanes) {
      const Vec first = S::load(x + c);
      const Vec second = S::load(x + c + S::kLanes);
      sums[0] = S::fma(first, first, sums[0]);
      sums[1] = S::fma(second, second, sums[1]);
    }
    for (; c < cols; c += S::kLanes) {
      const Vec last = load_some<S>(x + c, cols - c);
      sums[0] = S::fma(last, last, sums[0]);
    }
    const float mean = S::reduce_add(S::add(sums[0], sums[1])) / static_cast<float>(cols);
    const Vec factor = S::set(1.0F / __builtin_sqrtf(mean + epsilon));
    for (c = 0; c < cols; c += S::kLanes) {
      const Vec scaled = S::mul(load_some<S>(x + c, cols - c), factor);
      store_converted(out, c, S::mul(scaled, load_some<S>(weight + c, cols - c)), cols - c, dtype);
    }
  }

  static void gated_silu(const float* gate, const float* up, int64_t cols, DType dtype, void* out) {
    gated(gate, up, cols, dtype, out, [](Vec x) { return S::sub(S::zero(), x); });
  }

  /// x / 2 * (1 + tanh(y)) is x / (1 + exp(-2 y)).
  static void gated_gelu(const float* gate, const float* up, int64_t cols, DType dtype, void* out) {
    constexpr float kTwiceRootOf2ByPi = 1.595769121605731F;
    gated(gate, up, cols, dtype, out, [](Vec x) {
      const Vec factor =
          S::fma(S::mul(x, x), S::set(-0.044715F * kTwiceRootOf2ByPi), S::set(-kTwiceRootOf2ByPi));
      return S::mul(x, factor);
    });
  }

  static void soft_cap(float* x, int64_t cols, float cap) {
    for (int64_t c = 0; c < cols; c += S::kLanes) {
      const Vec share = S::div(load_some<S>(x + c, cols - c), S::set(cap));
      store_some<S>(x + c, S::mul(tanh_of<S>(share), S::set(cap)), cols - c);
    }
  }

  static void merge_partials(const float* const* partials, int count, int head_dim, DType dtype,
                             void* out) {
    float largest = -__builtin_inff();
    for (int p = 0; p < count; ++p) {
      if (partials[p][head_dim] > largest) largest = partials[p][head_dim];
    }
    alignas(64) float merged[kMaxHeadDim] = {};
    float total = 0;
    for (int p = 0; p < count; ++p) {
      const float* partial = partials[p];
      if (!(partial[head_dim + 1] > 0)) continue;
      alignas(64) float lanes[S::kLanes];
      S::store(lanes, exp_of<S>(S::set(partial[head_dim] - largest)));
      const float share = lanes[0] * partial[head_dim + 1];
      total += share;
      for (int d = 0; d < head_dim; d += S::kLanes) {
        S::store(merged + d, S::fma(S::set(share), S::load(partial + d), S::load(merged + d)));
      }
    }
    const Vec factor = S::set(total > 0 ? 1.0F / total : 0.0F);
    for (int d = 0; d < head_dim; d += S::kLanes) {
      store_converted(out, d, S::mul(S::load(merged + d), factor), S::kLanes, dtype);
    }
  }

  static void store_tile(const float* src, int64_t src_stride, float* dst, int64_t dst_stride,
                         int64_t rows, int64_t cols, const float* scales, bool accumulate) {
    for (int64_t r = 0; r < rows; ++r, src += src_stride, dst += dst_stride) {
      if (!accumulate && scales == nullptr) {
        __builtin_memcpy(dst, src, static_cast<size_t>(cols) * sizeof(float));
        continue;
      }
      for (int64_t c = 0; c < cols; c += S::kLanes) {
        Vec x = load_some<S>(src + c, cols - c);
        if (scales != nullptr) x = S::mul(x, load_some<S>(scales + c, cols - c));
        if (accumulate) x = S::add(x, load_some<S>(dst + c, cols - c));
        store_some<S>(dst + c, x, cols - c);
      }
    }
  }

  static void widen(const bf16_t* src, float* dst, int64_t count) {
    int64_t i = 0;
    for (; i + S::kLanes <= count; i += S::kLanes) S::store(dst + i, S::load_bf16(src + i));
    for (; i < count; ++i) {
      const uint32_t bits = static_cast<uint32_t>(src[i]) << 16;
      __builtin_memcpy(dst + i, &bits, sizeof bits);
    }
  }

  static void exp(const float* x, float* out, int64_t count) {
    for (int64_t i = 0; i < count; i += S::kLanes) {
      store_some<S>(out + i, exp_of<S>(load_some<S>(x + i, count - i)), count - i);
    }
  }

 private:
  /// out = gate / (1 + exp(exponent_of(gate))) * up
  template <typename ExponentOf>
  static void gated(const float* gate, const float* up, int64_t cols, DType dtype, void* out,
                    const ExponentOf& exponent_of) {
    const Vec one = S::set(1.0F);
    for (int64_t c = 0; c < cols; c += S::kLanes) {
      const Vec x = load_some<S>(gate + c, cols - c);
      const Vec scaled = S::mul(x, load_some<S>(up + c, cols - c));
      const Vec denominator = S::add(one, exp_of<S>(exponent_of(x)));
      store_converted(out, c, S::div(scaled, denominator), cols - c, dtype);
    }
  }
};

template <typename S, int kNumPanels>
constexpr KernelTable kernel_table(const char* name, const KvKernels* bfloat16_kv,
                                   const KvKernels* float32_kv, const KvKernels* fp8_kv,
                                   const PanelKernels (&panels)[kNumPanels]) {
  using Rows = RowFunctions<S>;
  return {
      .name = name,
      .bfloat16_kv = bfloat16_kv,
      .float32_kv = float32_kv,
      .fp8_kv = fp8_kv,
      .panels = panels,
      .num_panels = kNumPanels,
      .merge_partials = Rows::merge_partials,
      .rms_norm = Rows::rms_norm,
      .gated_silu = Rows::gated_silu,
      .gated_gelu = Rows::gated_gelu,
      .soft_cap = Rows::soft_cap,
      .store_tile = Rows::store_tile,
      .widen = Rows::widen,
      .exp = Rows::exp,
  };
}

}  // namespace
}  // namespace anyslot::cpu
