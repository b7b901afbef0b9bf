#pragma once

#include "model/gguf/gguf_file.h"
#include "text/gguf_tokenizer.h"

namespace anyslot::internal {

/// What a file's metadata say about its tokenizer. Failures stay in the fields; the texts are the
/// file's.
GgufTokenizer gguf_tokenizer_source(const GgufFields& fields);

}  // namespace anyslot::internal
