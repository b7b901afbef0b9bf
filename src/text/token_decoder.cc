#include "text/token_decoder.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <system_error>

#include "text/byte_level.h"

namespace anyslot {

namespace {

Expected<std::string> replaced(const Pattern& pattern, std::string_view content,
                               std::string_view text) {
  std::string out;
  const Status status = pattern.scan(
      text, [&](std::string_view part, bool is_match) { out += is_match ? content : part; });
  if (!status.ok()) return status;
  return out;
}

Expected<std::string> apply(const ReplaceTokenStep& step, const std::string& text, bool /*first*/) {
  return replaced(step.pattern, step.content, text);
}

Expected<std::string> apply(const StripTokenStep& step, const std::string& text, bool /*first*/) {
  return std::string(stripped(text, step));
}

Expected<std::string> apply(const MetaspaceTokenStep& step, const std::string& text, bool first) {
  return replaced(Pattern(step.replacement), first && step.drops_first ? "" : " ", text);
}

std::optional<uint8_t> named_byte(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || !text.ends_with('>')) return std::nullopt;
  uint8_t byte = 0;
  const char* const end = text.data() + 5;
  const auto [read, error] = std::from_chars(text.data() + 3, end, byte, 16);
  if (error != std::errc() || read != end) return std::nullopt;
  return byte;
}

}  // namespace

std::string_view stripped(std::string_view text, const StripTokenStep& step) {
  for (size_t i = 0; i < step.start && text.starts_with(step.character); ++i) {
    text.remove_prefix(step.character.size());
  }
  for (size_t i = 0; i < step.stop && text.ends_with(step.character); ++i) {
    text.remove_suffix(step.character.size());
  }
  return text;
}

Expected<TokenDecoder::Text> TokenDecoder::text_of(std::string_view name, bool is_first) const {
  if (options_.byte_level) {
    // A name outside the alphabet, as added tokens have, stands for itself.
    std::optional<std::string> bytes = alphabet_to_bytes(name);
    return Text{.bytes = bytes ? *std::move(bytes) : std::string(name)};
  }
  std::string text(name);
  for (const Step& step : options_.steps) {
    Expected<std::string> next =
        std::visit([&](const auto& kind) { return apply(kind, text, is_first); }, step);
    if (!next) return next.status();
    text = *std::move(next);
  }
  if (options_.byte_fallback) {
    if (const std::optional<uint8_t> byte = named_byte(text)) {
      return Text{.bytes = std::string(1, static_cast<char>(*byte)), .is_byte = true};
    }
  }
  return Text{.bytes = std::move(text)};
}

bool TokenDecoder::first_differs() const {
  return std::ranges::any_of(options_.steps, [](const Step& step) {
    const auto* metaspace = std::get_if<MetaspaceTokenStep>(&step);
    return metaspace != nullptr && metaspace->drops_first;
  });
}

}  // namespace anyslot
