#pragma once

#include <cstdint>
#include <string>

#include "support/temporary_folder.h"

namespace anyslot::testing_support {

/// A Llama, or with a window a Mistral, with random float32 weights, without tokenizer.
struct RandomModel {
  int vocab_size = 128;
  int hidden_size = 64;
  int intermediate_size = 96;
  int num_layers = 2;
  int num_heads = 4;
  int num_kv_heads = 2;
  int head_dim = 16;
  double rope_theta = 10000.0;
  int64_t max_position_embeddings = 8192;
  int64_t window = 0;  // 0: none
  bool tie_word_embeddings = false;
  uint64_t seed = 1;
};

/// A model's folder, removed at the end.
class TemporaryModel {
 public:
  explicit TemporaryModel(const RandomModel& model);

  const std::string& path() const { return folder_.path(); }

 private:
  TemporaryFolder folder_;
};

}  // namespace anyslot::testing_support
