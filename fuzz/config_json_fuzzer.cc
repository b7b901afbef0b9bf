#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "model/model_config.h"

// The input is a config.json, which is given as a file in memory.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const int file = memfd_create("config.json", 0);
  if (file < 0 || write(file, data, size) != static_cast<ssize_t>(size)) __builtin_trap();
  const std::string path = "/proc/self/fd/" + std::to_string(file);
  for (const int64_t max_model_len : {0, 4096}) {
    (void)anyslot::load_config_file(path, max_model_len);
  }
  close(file);
  return 0;
}
