#pragma once

#include <cstdint>
#include <string>

#include "model/gguf/test_gguf.h"

namespace anyslot::testing_gguf {

/// The model of a Hugging Face folder as llama.cpp's converter writes it: names, metadata, rows of
/// Q and K in its order, vectors in float32 and matrices in the type of that number; with the
/// tokenizer of the folder's tokenizer.json, if any, which must be of Llama 3's or Llama 2's kind.
/// Written from the converter's description (github.com/ggml-org/llama.cpp, conversion/), apart
/// from the reader.
GgufWriter gguf_of_folder(const std::string& folder, uint32_t matrix_type);

}  // namespace anyslot::testing_gguf
