#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "support/engine_support.h"
#include "support/random_model.h"

namespace anyslot::testing_support {

inline constexpr int64_t kBlockBytes = 2 * 2 * 2 * 16 * 16 * 4;

inline Segment document(uint64_t seed, int64_t tokens = 40) {
  Segment segment = document_segment(random_tokens(tokens, seed));
  segment.id = "d" + std::to_string(seed);
  return segment;
}

inline Request ask(const std::vector<Segment>& documents, Method method = Method::kLazy) {
  Request request;
  request.segments = documents;
  request.segments.push_back(text_segment({5, 6, 7}));
  request.method = method;
  request.sampling.max_tokens = 4;
  return request;
}

class DocumentsTest : public ::testing::Test {
 protected:
  static Engine open(int64_t blocks = 200, int max_running_requests = 64) {
    static const TemporaryModel model({});
    EngineConfig config = float32_config(model.path());
    config.kv_cache_bytes = blocks * kBlockBytes;
    config.max_running_requests = max_running_requests;
    return open_engine(config);
  }

  static CachedDocument register_document(Engine& engine, const Segment& segment,
                                          const DocumentOptions& options = {}) {
    auto registered = engine.register_document(segment, options);
    EXPECT_TRUE(registered.ok()) << registered.status().message();
    return registered.ok() ? *registered : CachedDocument();
  }

  static Status registering(Engine& engine, const Segment& segment,
                            const DocumentOptions& options = {}) {
    return engine.register_document(segment, options).status();
  }

  /// Runs `queue` while the engine's thread waits for it.
  template <typename Queue>
  static void hold(Engine& engine, const Queue& queue) {
    run_between_steps(engine, [&](internal::StepLoop&) { queue(); });
  }
};

}  // namespace anyslot::testing_support
