#include "answer_format.h"

#include <atomic>
#include <random>

namespace anyslot::server {

std::string new_answer_id(std::string_view prefix) {
  static const uint64_t kProcess =
      (uint64_t{std::random_device()()} << 32) | std::random_device()();
  static std::atomic<uint64_t> next{0};
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string id(prefix);
  for (const uint64_t number : {kProcess, next.fetch_add(1)}) {
    for (int shift = 60; shift >= 0; shift -= 4) id += kDigits[(number >> shift) & 15U];
  }
  return id;
}

}  // namespace anyslot::server
