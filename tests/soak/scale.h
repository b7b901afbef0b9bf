#pragma once

#include <cstdint>
#include <cstdio>
#include <ostream>
#include <string>
#include <utility>

#include "server/test_server.h"

namespace anyslot::soak {

/// How much a soak test does: kShort in every test run, kLong in scripts/soak.sh.
struct Scale {
  int questions;
  int clients;
  int rounds;
  int requests;  // of the crowd in each round
  int aborts;
  int uses;             // of the document that must outlast a flood
  int64_t pool_blocks;  // of the pool that is flooded
  int unique_prompts;

  friend void PrintTo(const Scale& scale, std::ostream* out) {
    *out << scale.clients << " clients";
  }
};

// Under a sanitizer, which makes the engine many times slower: fewer of everything, but clients
// enough for as many requests at once.
inline constexpr Scale kShort = ANYSLOT_SANITIZED == 0 ? Scale{48, 64, 10, 64, 100, 100, 40, 64}
                                                       : Scale{8, 48, 2, 48, 40, 100, 40, 16};
inline constexpr Scale kLong{500, 256, 10, 1000, 2000, 1000, 400, 1000};
constexpr int64_t kBlockTokens = 16;

/// The bundled model in float32, with a pool of so many blocks of 16 tokens.
inline EngineConfig config_with_blocks(int64_t blocks) {
  constexpr int64_t kLayers = 8, kKvHeads = 2, kHeadDim = 64;
  EngineConfig config = server::bundled_config();
  config.kv_cache_bytes = blocks * kBlockTokens * kLayers * 2 * kKvHeads * kHeadDim * 4;
  return config;
}

/// Prints a line each time a tenth more is done.
class Progress {
 public:
  Progress(std::string what, int total) : what_(std::move(what)), total_(total) {}
  void operator()(int done) {
    const int tenth = static_cast<int>(int64_t{10} * done / total_);
    if (tenth <= told_) return;
    told_ = tenth;
    std::printf("  %s: %d of %d\n", what_.c_str(), done, total_);
    std::fflush(stdout);
  }

 private:
  std::string what_;
  int total_;
  int told_ = 0;
};

}  // namespace anyslot::soak
