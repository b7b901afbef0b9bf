#include "model/gguf/gguf_types.h"

#include <cstring>
#include <string_view>
#include <utility>

// The layouts are those of ggml (github.com/ggml-org/ggml): src/ggml-common.h for the blocks,
// docs/gguf.md for the numbers of the types. d: the scale of a block, in half precision.

namespace anyslot {

namespace {

float read_half(const uint8_t* at) {
  fp16_t bits;
  std::memcpy(&bits, at, sizeof bits);
  return fp16_to_float(bits);
}

// Blocks of 32. The low four bits of byte i belong to number i, the high four to number 16 + i.

int nibble(const uint8_t* nibbles, int i) {
  return i < 16 ? nibbles[i] & 15 : nibbles[i - 16] >> 4;
}

/// d, 16 bytes.
void decode_q4_0(const uint8_t* block, float* out) {
  const float d = read_half(block);
  for (int i = 0; i < 32; ++i) out[i] = d * static_cast<float>(nibble(block + 2, i) - 8);
}

/// d, minimum, 16 bytes.
void decode_q4_1(const uint8_t* block, float* out) {
  const float d = read_half(block);
  const float minimum = read_half(block + 2);
  for (int i = 0; i < 32; ++i) out[i] = d * static_cast<float>(nibble(block + 4, i)) + minimum;
}

int five_bits(const uint8_t* fifth_bits, const uint8_t* nibbles, int i) {
  return nibble(nibbles, i) | (fifth_bits[i / 8] >> (i % 8) & 1) << 4;
}

/// d, 32 fifth bits, 16 bytes.
void decode_q5_0(const uint8_t* block, float* out) {
  const float d = read_half(block);
  for (int i = 0; i < 32; ++i) {
    out[i] = d * static_cast<float>(five_bits(block + 2, block + 6, i) - 16);
  }
}

/// d, minimum, 32 fifth bits, 16 bytes.
void decode_q5_1(const uint8_t* block, float* out) {
  const float d = read_half(block);
  const float minimum = read_half(block + 2);
  for (int i = 0; i < 32; ++i) {
    out[i] = d * static_cast<float>(five_bits(block + 4, block + 8, i)) + minimum;
  }
}

/// d, 32 signed bytes.
void decode_q8_0(const uint8_t* block, float* out) {
  const float d = read_half(block);
  for (int i = 0; i < 32; ++i) out[i] = d * static_cast<float>(static_cast<int8_t>(block[2 + i]));
}

// Blocks of 256, cut into groups of 32 (Q4_K, Q5_K) or 16 (Q6_K) with a whole scale each.

struct GroupScale {
  int scale = 0;
  int minimum = 0;
};

/// Eight pairs of six bits in twelve bytes: the first four pairs in the low six bits of bytes 0 to
/// 7; of the others the low four bits in bytes 8 to 11, and the high two above those of the first.
GroupScale unpack_group_scale(const uint8_t* packed, int group) {
  if (group < 4) return {packed[group] & 63, packed[group + 4] & 63};
  return {(packed[group + 4] & 15) | (packed[group - 4] >> 6) << 4,
          packed[group + 4] >> 4 | (packed[group] >> 6) << 4};
}

/// d, the scale of the minima, 12 bytes of scales; then nibbles, and fifth bits unless null. Groups
/// 2k and 2k + 1 share the 32 bytes from 32k, the low and the high four bits; bit g of
/// fifth_bits[i] belongs to number i of group g.
void decode_groups_of_32(const uint8_t* block, const uint8_t* fifth_bits, const uint8_t* nibbles,
                         float* out) {
  const float d = read_half(block);
  const float d_minimum = read_half(block + 2);
  for (int group = 0; group < 8; ++group) {
    const GroupScale whole = unpack_group_scale(block + 4, group);
    const float scale = d * static_cast<float>(whole.scale);
    const float minimum = d_minimum * static_cast<float>(whole.minimum);
    const uint8_t* bytes = nibbles + group / 2 * 32;
    const int shift = group % 2 * 4;
    for (int i = 0; i < 32; ++i) {
      int value = bytes[i] >> shift & 15;
      if (fifth_bits != nullptr) value |= (fifth_bits[i] >> group & 1) << 4;
      *out++ = scale * static_cast<float>(value) - minimum;
    }
  }
}

void decode_q4_k(const uint8_t* block, float* out) {
  decode_groups_of_32(block, nullptr, block + 16, out);
}

void decode_q5_k(const uint8_t* block, float* out) {
  decode_groups_of_32(block, block + 16, block + 48, out);
}

/// 128 bytes of low four bits, 64 bytes of high two bits, 16 signed scales, d. Each half of the
/// block is four quarters of 32 numbers: quarters k and k + 2 share low bytes, all four share high
/// bytes.
void decode_q6_k(const uint8_t* block, float* out) {
  const float d = read_half(block + 208);
  for (int half = 0; half < 2; ++half) {
    const uint8_t* low = block + half * 64;
    const uint8_t* high = block + 128 + half * 32;
    const uint8_t* scales = block + 192 + half * 8;
    for (int quarter = 0; quarter < 4; ++quarter) {
      for (int i = 0; i < 32; ++i) {
        const int value =
            (low[quarter % 2 * 32 + i] >> quarter / 2 * 4 & 15) | (high[i] >> quarter * 2 & 3) << 4;
        const auto scale = static_cast<int8_t>(scales[quarter * 2 + i / 16]);
        *out++ = d * static_cast<float>(scale) * static_cast<float>(value - 32);
      }
    }
  }
}

constexpr GgufTensorType kTypes[] = {
    {0, "F32", 1, 4, DType::kFloat32, nullptr},
    {1, "F16", 1, 2, DType::kFloat16, nullptr},
    {30, "BF16", 1, 2, DType::kBFloat16, nullptr},
    {8, "Q8_0", 32, 34, std::nullopt, decode_q8_0},
    {2, "Q4_0", 32, 18, std::nullopt, decode_q4_0},
    {3, "Q4_1", 32, 20, std::nullopt, decode_q4_1},
    {6, "Q5_0", 32, 22, std::nullopt, decode_q5_0},
    {7, "Q5_1", 32, 24, std::nullopt, decode_q5_1},
    {12, "Q4_K", 256, 144, std::nullopt, decode_q4_k},
    {13, "Q5_K", 256, 176, std::nullopt, decode_q5_k},
    {14, "Q6_K", 256, 210, std::nullopt, decode_q6_k},
    // Types that files have and that cannot be read.
    {9, "Q8_1", 32, 36, std::nullopt, nullptr},
    {10, "Q2_K", 256, 84, std::nullopt, nullptr},
    {11, "Q3_K", 256, 110, std::nullopt, nullptr},
    {15, "Q8_K", 256, 292, std::nullopt, nullptr},
    {16, "IQ2_XXS", 256, 66, std::nullopt, nullptr},
    {17, "IQ2_XS", 256, 74, std::nullopt, nullptr},
    {18, "IQ3_XXS", 256, 98, std::nullopt, nullptr},
    {19, "IQ1_S", 256, 50, std::nullopt, nullptr},
    {20, "IQ4_NL", 32, 18, std::nullopt, nullptr},
    {21, "IQ3_S", 256, 110, std::nullopt, nullptr},
    {22, "IQ2_S", 256, 82, std::nullopt, nullptr},
    {23, "IQ4_XS", 256, 136, std::nullopt, nullptr},
    {24, "I8", 1, 1, std::nullopt, nullptr},
    {25, "I16", 1, 2, std::nullopt, nullptr},
    {26, "I32", 1, 4, std::nullopt, nullptr},
    {27, "I64", 1, 8, std::nullopt, nullptr},
    {28, "F64", 1, 8, std::nullopt, nullptr},
    {29, "IQ1_M", 256, 56, std::nullopt, nullptr},
    {34, "TQ1_0", 256, 54, std::nullopt, nullptr},
    {35, "TQ2_0", 256, 66, std::nullopt, nullptr},
    {39, "MXFP4", 32, 17, std::nullopt, nullptr},
};

}  // namespace

const GgufTensorType* find_gguf_type(uint32_t number) {
  for (const GgufTensorType& type : kTypes) {
    if (type.number == number) return &type;
  }
  return nullptr;
}

std::string supported_gguf_types() {
  std::string names;
  for (const GgufTensorType& type : kTypes) {
    if (!type.is_readable()) continue;
    if (!names.empty()) names += ", ";
    names += type.name;
  }
  return names;
}

void decode_gguf_blocks(const GgufTensorType& type, std::span<const std::byte> blocks,
                        std::span<float> out) {
  const auto* block = reinterpret_cast<const uint8_t*>(blocks.data());
  for (size_t i = 0; i < out.size(); i += type.block_elements, block += type.block_bytes) {
    type.decode(block, out.data() + i);
  }
}

}  // namespace anyslot
