#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "fuzz/use_tokenizer.h"
#include "text/tokenizer_file.h"

// The input is a tokenizer.json.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto description =
      anyslot::read_tokenizer_json("fuzz", std::string(reinterpret_cast<const char*>(data), size));
  if (description) use_tokenizer(*std::move(description));
  return 0;
}
