#include <cstddef>
#include <cstdint>

#include "fuzz/memory_file.h"
#include "model/model_config.h"

// The input is a config.json.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const MemoryFile file("config.json", data, size);
  for (const int64_t max_model_len : {0, 4096}) {
    (void)anyslot::load_config_file(file.path(), max_model_len);
  }
  return 0;
}
