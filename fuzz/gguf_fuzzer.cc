#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "engine/gguf_tokenizer_source.h"
#include "fuzz/memory_file.h"
#include "fuzz/use_tokenizer.h"
#include "model/gguf/gguf_config.h"
#include "model/gguf/gguf_file.h"
#include "text/gguf_tokenizer.h"

// The input is a GGUF file: its directory, its metadata as a config and as a tokenizer. What is
// accepted must lie inside it.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace anyslot;
  const MemoryFile input("model.gguf", data, size);
  const auto file = GgufFile::open(input.path());
  if (!file) return 0;
  for (const auto& [name, tensor] : (*file)->tensors()) {
    if (tensor.begin > tensor.end || tensor.end > size) __builtin_trap();
  }
  for (const int64_t max_model_len : {0, 4096}) (void)gguf_config(**file, max_model_len);
  Status status;
  const GgufTokenizer source = internal::gguf_tokenizer_source(GgufFields(**file, status));
  if (!status.ok()) return 0;
  auto description = read_gguf_tokenizer(source);
  if (description) use_tokenizer(*std::move(description));
  return 0;
}
