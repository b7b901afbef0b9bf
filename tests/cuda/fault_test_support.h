#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "cuda/faults.h"
#include "support/engine_support.h"
#include "support/random_model.h"

namespace anyslot::testing_support {

/// Engines on a GPU whose calls can fail, of a model that the tensor-core kernels serve.
class CudaFaultTest : public testing::Test {
 protected:
  void SetUp() override {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) GTEST_SKIP() << "no GPU";
    alarm(kLongestSeconds);  // ends the program: what hangs has failed
  }
  void TearDown() override { alarm(0); }

  static EngineConfig config() {
    static const TemporaryModel model([] {
      RandomModel shape;
      shape.head_dim = 64;
      return shape;
    }());
    EngineConfig config = float32_config(model.path());
    config.device = "cuda";
    config.dtype = ComputeType::kBFloat16;
    config.kv_cache_bytes = int64_t{16} << 20;
    return config;
  }

  /// Decodes long enough that its steps are recorded.
  static Request request(Method method, uint64_t seed = 1, int max_tokens = 12) {
    Request request;
    request.segments = {document_segment(random_tokens(40, seed)),
                        document_segment(random_tokens(1, seed + 100)),
                        text_segment(random_tokens(9, seed + 200))};
    request.method = method;
    request.sampling.max_tokens = max_tokens;
    request.sampling.ignore_eos = true;
    return request;
  }

 private:
  static constexpr unsigned kLongestSeconds = 240;
};

}  // namespace anyslot::testing_support
