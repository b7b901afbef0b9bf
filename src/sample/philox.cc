#include "sample/philox.h"

#include <array>

namespace anyslot {

namespace {

using Counter = std::array<uint32_t, 4>;

Counter philox_round(const Counter& c, uint32_t key0, uint32_t key1) {
  const uint64_t product0 = uint64_t{0xD2511F53U} * c[0];
  const uint64_t product1 = uint64_t{0xCD9E8D57U} * c[2];
  return {static_cast<uint32_t>(product1 >> 32) ^ c[1] ^ key0, static_cast<uint32_t>(product1),
          static_cast<uint32_t>(product0 >> 32) ^ c[3] ^ key1, static_cast<uint32_t>(product0)};
}

}  // namespace

double uniform_number(uint64_t seed, uint32_t choice, uint64_t position) {
  Counter counter{static_cast<uint32_t>(position), static_cast<uint32_t>(position >> 32), choice,
                  0};
  auto key0 = static_cast<uint32_t>(seed);
  auto key1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    counter = philox_round(counter, key0, key1);
    key0 += 0x9E3779B9U;
    key1 += 0xBB67AE85U;
  }
  const uint64_t bits = (uint64_t{counter[0]} << 32 | counter[1]) >> 11;
  return static_cast<double>(bits) * 0x1p-53;
}

}  // namespace anyslot
