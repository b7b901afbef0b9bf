#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"

// The interface between the backend and the kernels that are compiled once per instruction set.
// Plain data and function pointers only: code that is inlined into both sides would be compiled
// with the flags of either.

namespace anyslot::cpu {

/// Tokens of a block.
inline constexpr int kBlockTokens = 16;
/// Keys that are scored at once, at most.
inline constexpr int kTileKeys = 128;
inline constexpr int kTileBlocks = kTileKeys / kBlockTokens;
/// The largest head_dim, for buffers on the stack.
inline constexpr int kMaxHeadDim = 1024;
/// Floats of the widest vector.
inline constexpr int kMaxLanes = 16;

/// The rotation of one position: dimension j is turned with dimension j + num_pairs.
struct Turn {
  const float* cosine = nullptr;  // [num_pairs]
  const float* sine = nullptr;
  int num_pairs = 0;
};

/// The rows of a work item for one kv head: each query row stands for the `group` heads that share
/// the kv head. All memory is the worker's own, 64-byte aligned.
struct AttentionTile {
  int num_rows = 0;
  int group = 0;
  int head_dim = 0;         // a multiple of 16
  float score_cap = 0;      // see AttentionSpec
  void* queries = nullptr;  // [num_rows * group, head_dim]: turned and scaled, in the kernel's type
  /// [num_rows * group]: scores count from here: minus a recent maximum, so that weights are
  /// 2^score, for scores in the kernel's units.
  float* starts = nullptr;
  float* limits = nullptr;    // [num_rows * group]: a score above it moves the start
  float* sums = nullptr;      // [num_rows * group, kMaxLanes]: of the weights, per lane
  float* outputs = nullptr;   // [num_rows * group, head_dim]: weighted values, not yet divided
  int32_t* begins = nullptr;  // [num_rows * group]: visible tokens of the run at hand
  int32_t* ends = nullptr;
};

/// Consecutive blocks of a few kv heads, in the order in which they are attended to: tile_blocks
/// blocks of the first head, the same of the second, ..., then the next tile_blocks blocks of the
/// first. Row r sees tokens [row_begins[r], row_ends[r]), counted from the first block's first
/// token.
struct KeyRun {
  const std::byte* const* keys = nullptr;  // [num_listed]
  const std::byte* const* values = nullptr;
  int num_blocks = 0;                   // of each head
  int tile_blocks = 0;                  // 1 to kTileBlocks, which are scored at once
  int num_listed = 0;                   // behind the run's: blocks that come next, to be prefetched
  const int32_t* row_begins = nullptr;  // [num_rows]
  const int32_t* row_ends = nullptr;
};

/// Where one token's K and V of one head go: the head's blocks and the token's place in them.
struct TokenSlot {
  std::byte* key = nullptr;
  std::byte* value = nullptr;
  int token = 0;
};

/// Elements of K or V that stand side by side in a lane of a packed block.
constexpr int pack_of(DType dtype) { return dtype == DType::kFloat32 ? 1 : 2; }

/// What touches KV, for one type of KV. Inside a block of one head the elements are packed so that
/// sums run along lanes: with w = pack_of(dtype), element (token t, dimension d)
/// of K is at d / w * 16 w + t w + d % w, and of V at t / w * head_dim w + d w + t % w.
struct KvKernels {
  void (*reset)(const AttentionTile& tile);
  /// Cosines and sines of `turn` and then `shift`, unless that is null, times what set_query scales
  /// turned dimensions by. cosine, sine: [turn.num_pairs].
  void (*compose_turns)(const Turn& turn, const Turn* shift, float scale, float* cosine,
                        float* sine);
  /// Turns the group's heads of one row by what compose_turns made, and scales the dimensions that
  /// are not turned. query: [group, head_dim].
  void (*set_query)(const AttentionTile& tile, int row, const float* query, const Turn& turn,
                    float scale);
  /// tiles: [num_tiles], the same rows for each of the run's heads.
  void (*attend)(const AttentionTile* tiles, int num_tiles, const KeyRun& run);
  /// One row's result to [group, head_dim] of bfloat16 or float32.
  void (*store_output)(const AttentionTile& tile, int row, DType dtype, void* out);
  /// One row's state to [group, head_dim + 2]: the normalized result, what
  /// the weights are relative to (as a power of e), and their sum.
  void (*store_partial)(const AttentionTile& tile, int row, float* partial);

  /// 2^x as attend forms weights of scores, as exactly as the type of KV needs.
  void (*exp2)(const float* x, float* out, int64_t count);

  /// Turns all keys of a block by one angle. Here and below `next` is a block that will be turned
  /// soon, fetched meanwhile.
  void (*turn_block)(const std::byte* src, const std::byte* next, std::byte* dst, int head_dim,
                     const Turn& turn);
  /// Cosines and sines of base + t for the tokens t of a block. All but base: [num_pairs, 16];
  /// token_cosine, token_sine: of the positions 0 to 15.
  void (*add_token_turns)(const Turn& base, const float* token_cosine, const float* token_sine,
                          float* cosine, float* sine);
  /// Turns each key by the angles of its token. cosine, sine: [num_pairs, 16].
  void (*turn_block_by_token)(const std::byte* src, const std::byte* next, std::byte* dst,
                              int head_dim, int num_pairs, const float* cosine, const float* sine);
  /// Turns K and stores K and V of one token. k, v: [head_dim].
  void (*store_token)(const TokenSlot& slot, int head_dim, const Turn& turn, const float* k,
                      const float* v);
};

/// Out_features of a weight panel.
inline constexpr int kPanelColumns = 64;
/// Rows that PanelKernels::multiply takes, at most: with more, products are bound by arithmetic.
inline constexpr int kFewRows = 8;

/// The type in which a weight lies in memory.
enum class StoredType : uint8_t { kFloat32, kBFloat16, kInt8 };

/// A few rows times one panel of a weight.
struct PanelProduct {
  const std::byte* panel = nullptr;
  const float* scales = nullptr;  // [kPanelColumns], of int8 weights, else null
  const int32_t* sums = nullptr;  // [kPanelColumns], of the int8 weights of a column, else null
  int64_t padded_in = 0;
  const std::byte* operands = nullptr;  // num_rows rows as prepare_row writes them
  int64_t operand_stride = 0;           // bytes
  int num_rows = 0;                     // 1 to kFewRows
  float* out = nullptr;                 // [num_rows, num_columns]
  int64_t out_stride = 0;
  int num_columns = 0;  // 1 to kPanelColumns
  bool accumulate = false;
};

/// Weights of one stored type in products of one type. A panel holds kPanelColumns out_features,
/// zeros where there are fewer, over all in_features, padded with zeros to a multiple of
/// in_padding(product): element (in i, out o) is at (i / group * kPanelColumns + o) * group + i %
/// group.
struct PanelKernels {
  StoredType stored;
  DType product;
  int group;
  /// Makes a row of float32 or bfloat16 ready for multiply, in operand_bytes(padded_in) bytes.
  void (*prepare_row)(const void* x, DType type, int64_t in, int64_t padded_in, std::byte* operand);
  void (*multiply)(const PanelProduct& product);
  /// The panel's numbers, without scales, in the product's type: in_group(product) in_features of
  /// one column side by side; groups of rows `stride` elements apart.
  void (*unpack)(const std::byte* panel, int64_t padded_in, std::byte* out, int64_t stride);
};

/// What oneDNN pads in_features to, and how many of them it puts side by side.
constexpr int64_t in_padding(DType product) { return product == DType::kBFloat16 ? 32 : 16; }
constexpr int64_t in_group(DType product) { return product == DType::kBFloat16 ? 2 : 1; }
constexpr int64_t operand_bytes(int64_t padded_in) {
  return padded_in * static_cast<int64_t>(sizeof(float)) + 64;
}

/// One instruction set's functions.
struct KernelTable {
  const char* name;
  const KvKernels* bfloat16_kv;
  const KvKernels* float32_kv;
  const KvKernels* fp8_kv;
  const PanelKernels* panels;  // [num_panels]
  int num_panels;

  /// Merges [count] partials of one head, each [head_dim + 2], in their order; those with a sum of
  /// 0 are empty. Without any other the result is 0.
  void (*merge_partials)(const float* const* partials, int count, int head_dim, DType dtype,
                         void* out);
  void (*rms_norm)(const float* x, const float* weight, float epsilon, int64_t cols, DType dtype,
                   void* out);
  void (*gated_silu)(const float* gate, const float* up, int64_t cols, DType dtype, void* out);
  void (*gated_gelu)(const float* gate, const float* up, int64_t cols, DType dtype, void* out);
  /// x = cap * tanh(x / cap).
  void (*soft_cap)(float* x, int64_t cols, float cap);
  /// dst = src, or dst += src, of [rows, cols]; src is scaled by `scales` [cols] unless that is
  /// null.
  void (*store_tile)(const float* src, int64_t src_stride, float* dst, int64_t dst_stride,
                     int64_t rows, int64_t cols, const float* scales, bool accumulate);
  void (*widen)(const bf16_t* src, float* dst, int64_t count);
  void (*exp)(const float* x, float* out, int64_t count);
};

}  // namespace anyslot::cpu
