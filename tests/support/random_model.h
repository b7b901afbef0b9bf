#pragma once

#include <cstdint>
#include <string>

namespace anyslot::testing_support {

/// A Llama with random float32 weights, without tokenizer.
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
  bool tie_word_embeddings = false;
  uint64_t seed = 1;
};

/// Writes the model's folder below the system's temporary directory; returns its path.
std::string write_random_model(const RandomModel& model);

}  // namespace anyslot::testing_support
