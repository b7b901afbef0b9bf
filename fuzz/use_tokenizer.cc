#include "fuzz/use_tokenizer.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "text/tokenizer.h"

void use_tokenizer(anyslot::TokenizerDescription description) {
  using namespace anyslot;
  const std::optional<int32_t> unknown = description.unknown_id;
  const auto tokenizer = Tokenizer::make(std::move(description));
  if (!tokenizer) return;

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
}
