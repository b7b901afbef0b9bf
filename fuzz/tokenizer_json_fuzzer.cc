#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "text/tokenizer.h"
#include "text/tokenizer_file.h"

// The input is a tokenizer.json. One that is accepted makes tokens of a text, of which none is
// special where nothing is markup (an unknown character's is no such token), and text of any
// tokens.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace anyslot;
  auto description =
      read_tokenizer_json("fuzz", std::string(reinterpret_cast<const char*>(data), size));
  if (!description) return 0;
  const std::optional<int32_t> unknown = description->unknown_id;
  const auto tokenizer = Tokenizer::make(*std::move(description));
  if (!tokenizer) return 0;

  const std::string text =
      "<s> The  caf\u00e9's 12 e\u0301\u0323\U0001F642<unk></s>\n\n\u2581x ab" +
      std::string(100, 'a') + "<s>";
  const ByteRange begin{0, 4};
  for (const std::span<const ByteRange> markup :
       {std::span<const ByteRange>(), std::span(&begin, 1)}) {
    const auto ids = tokenizer->encode(text, markup);
    if (!ids) continue;
    const bool smuggled = std::ranges::any_of(
        *ids, [&](int32_t id) { return tokenizer->is_special(id) && id != unknown; });
    if (markup.empty() && smuggled) __builtin_trap();
    (void)tokenizer->decode(tokenizer->add_special_tokens(*ids), true);
  }
  std::vector<int32_t> all;
  for (int32_t id = 0; id < std::min(tokenizer->vocab_size(), 400); ++id) all.push_back(id);
  (void)tokenizer->decode(all, false);
  return 0;
}
