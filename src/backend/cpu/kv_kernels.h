#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/attention_kernel.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/turn_kernel.h"

namespace anyslot::cpu {
namespace {  // NOLINT: each instruction set has its own copy, compiled with its own flags

/// [count] floats to bfloat16 or float32.
template <typename S>
void store_row(const float* x, int64_t count, DType dtype, void* out) {
  if (dtype == DType::kFloat32) {
    __builtin_memcpy(out, x, static_cast<size_t>(count) * sizeof(float));
    return;
  }
  auto* bf16 = static_cast<bf16_t*>(out);
  for (int64_t i = 0; i < count; i += S::kLanes) {
    store_some_bf16<S>(bf16 + i, load_some<S>(x + i, count - i), count - i);
  }
}

/// The functions of KvKernels for one format of K and V.
template <typename Dot>
struct KvFunctions {
  using S = typename Dot::Simd;
  using Vec = typename S::Vec;
  using Operand = typename Dot::Operand;
  using Element = typename Dot::Element;

  static void compose_turns(const Turn& turn, const Turn* shift, float scale, float* cosine,
                            float* sine) {
    cpu::compose_turns<S>(turn, shift, scale * kScoreScale, cosine, sine);
  }

  static void set_query(const AttentionTile& tile, int row, const float* query, const Turn& turn,
                        float scale) {
    const int head_dim = tile.head_dim;
    auto* queries = static_cast<Operand*>(tile.queries) + int64_t{row} * tile.group * head_dim;
    for (int h = 0; h < tile.group; ++h) {
      turn_head<S>(query + int64_t{h} * head_dim, head_dim, turn, scale * kScoreScale,
                   OperandSink{queries + int64_t{h} * head_dim});
    }
  }

  static void store_output(const AttentionTile& tile, int row, DType dtype, void* out) {
    const int head_dim = tile.head_dim;
    for (int h = 0; h < tile.group; ++h) {
      const int64_t m = int64_t{row} * tile.group + h;
      const Vec factor = S::set(reciprocal(sum_of(tile, m)) * Dot::kUnit);
      float* outputs = tile.outputs + m * head_dim;
      for (int d = 0; d < head_dim; d += S::kLanes) {
        S::store(outputs + d, S::mul(S::load(outputs + d), factor));
      }
    }
    store_row<S>(tile.outputs + int64_t{row} * tile.group * head_dim,
                 int64_t{tile.group} * head_dim, dtype, out);
  }

  static void store_partial(const AttentionTile& tile, int row, float* partial) {
    const int head_dim = tile.head_dim;
    for (int h = 0; h < tile.group; ++h) {
      const int64_t m = int64_t{row} * tile.group + h;
      const float sum = sum_of(tile, m);
      const Vec factor = S::set(reciprocal(sum) * Dot::kUnit);
      for (int d = 0; d < head_dim; d += S::kLanes) {
        S::store(partial + d, S::mul(S::load(tile.outputs + m * head_dim + d), factor));
      }
      partial[head_dim] = -tile.starts[m] / kLog2E;
      partial[head_dim + 1] = sum;
      partial += head_dim + 2;
    }
  }

  static void exp2(const float* x, float* out, int64_t count) {
    for (int64_t i = 0; i < count; i += S::kLanes) {
      store_some<S>(out + i, exp2_of<S, Dot::kExpDegree>(load_some<S>(x + i, count - i)),
                    count - i);
    }
  }

  static void turn_block(const std::byte* src, const std::byte* next, std::byte* dst, int head_dim,
                         const Turn& turn) {
    fetch(next, head_dim);
    turn_packed_keys<S, Element>(src, dst, head_dim, turn.num_pairs, SameAngle<S>{turn});
  }

  static void add_token_turns(const Turn& base, const float* token_cosine, const float* token_sine,
                              float* cosine, float* sine) {
    for (int pair = 0; pair < base.num_pairs; ++pair) {
      const Vec base_cosine = S::set(base.cosine[pair]);
      const Vec base_sine = S::set(base.sine[pair]);
      for (int t = pair * kBlockTokens; t < (pair + 1) * kBlockTokens; t += S::kLanes) {
        const Vec c = S::load(token_cosine + t);
        const Vec s = S::load(token_sine + t);
        S::store(cosine + t, S::fnma(base_sine, s, S::mul(base_cosine, c)));
        S::store(sine + t, S::fma(base_cosine, s, S::mul(base_sine, c)));
      }
    }
  }

  static void turn_block_by_token(const std::byte* src, const std::byte* next, std::byte* dst,
                                  int head_dim, int num_pairs, const float* cosine,
                                  const float* sine) {
    fetch(next, head_dim);
    turn_packed_keys<S, Element>(src, dst, head_dim, num_pairs, AngleOfToken<S>{cosine, sine});
  }

  static void store_token(const TokenSlot& slot, int head_dim, const Turn& turn, const float* k,
                          const float* v) {
    alignas(64) float turned[kMaxHeadDim];
    turn_head<S>(k, head_dim, turn, 1.0F, FloatSink<S>{turned});
    constexpr int kPack = Dot::kPack;
    auto* keys = reinterpret_cast<Element*>(slot.key);
    auto* values = reinterpret_cast<Element*>(slot.value);
    alignas(64) Element key[kMaxHeadDim];
    alignas(64) Element value[kMaxHeadDim];
    round_to_elements(turned, head_dim, key);
    round_to_elements(v, head_dim, value);
    values += slot.token / kPack * head_dim * kPack + slot.token % kPack;
    for (int d = 0; d < head_dim; ++d) {
      keys[d / kPack * kBlockTokens * kPack + slot.token * kPack + d % kPack] = key[d];
      values[d * kPack] = value[d];
    }
  }

 private:
  static constexpr float kScoreScale = kLog2E * Dot::kUnit;

  struct OperandSink {
    Operand* out;
    void store(int d, Vec x) const { Dot::store_operands(out + d, x); }
    void store(int d, Vec x, int count) const {
      Operand operands[S::kLanes];
      Dot::store_operands(operands, x);
      __builtin_memcpy(out + d, operands, static_cast<size_t>(count) * sizeof(Operand));
    }
  };

  static void fetch(const std::byte* block, int head_dim) {
    const auto bytes = static_cast<int64_t>(sizeof(Element)) * kBlockTokens * head_dim;
    for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(block + i, 0, 2);
  }
  static float sum_of(const AttentionTile& tile, int64_t m) {
    Vec sum = S::zero();
    for (int i = 0; i < kMaxLanes; i += S::kLanes) {
      sum = S::add(sum, S::load(tile.sums + m * kMaxLanes + i));
    }
    return S::reduce_add(sum);
  }
  static float reciprocal(float sum) { return sum > 0 ? 1.0F / sum : 0.0F; }
  static void round_to_elements(const float* x, int count, float* out) {
    __builtin_memcpy(out, x, static_cast<size_t>(count) * sizeof(float));
  }
  static void round_to_elements(const float* x, int count, bf16_t* out) {
    for (int i = 0; i < count; i += S::kLanes) S::store_bf16(out + i, S::load(x + i));
  }
  static void round_to_elements(const float* x, int count, fp8_e4m3_t* out) {
    for (int i = 0; i < count; i += S::kLanes) S::store_fp8(out + i, S::load(x + i));
  }
};

template <typename Dot>
constexpr KvKernels kv_kernels() {
  using Functions = KvFunctions<Dot>;
  return {
      .reset = AttentionKernel<Dot>::reset,
      .compose_turns = Functions::compose_turns,
      .set_query = Functions::set_query,
      .attend = AttentionKernel<Dot>::attend,
      .store_output = Functions::store_output,
      .store_partial = Functions::store_partial,
      .exp2 = Functions::exp2,
      .turn_block = Functions::turn_block,
      .add_token_turns = Functions::add_token_turns,
      .turn_block_by_token = Functions::turn_block_by_token,
      .store_token = Functions::store_token,
  };
}

}  // namespace
}  // namespace anyslot::cpu
